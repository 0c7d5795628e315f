# Everything runs in .venv, made on first use; a target installs only what is missing. TORCH_INDEX=URL picks torch wheels.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install -q -c constraints.txt $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX))
WORKERS ?= 3
BENCHES := $(filter-out $(addprefix tests/benchmarks/,bare_loop.py peer_step.py big_store.py store_peer.py),$(wildcard tests/benchmarks/*.py))

.DEFAULT_GOAL := help
.PHONY: help setup ablate test test-gpu soak lint bench clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 18

setup: .venv/base .venv/test  ## make .venv with expkit and what its tests need

ablate: .venv/base  ## run the shipped ablation on the shipped data; ends with the report's path
	$(BIN)/expkit sweep ablate.yaml

test: .venv/test  ## run the tests
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile -m "not soak"

test-gpu:  ## run trainer, precision and microbatching on one CUDA device; nothing where there is none
	@$(PYTHON) tests/gpu/run.py

soak: .venv/test  ## run every test, the long ones too
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile --timeout=3600

lint: .venv/lint  ## check format, style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/test  ## measure what we claim about speed, simulate what we claim about intervals
	for bench in $(BENCHES); do echo "== $$bench"; OMP_NUM_THREADS=1 PYTHONPATH=. $(BIN)/python $$bench || exit 1; done

clean:  ## remove .venv and what tools left; results in runs/ stay
	rm -rf .venv .peers dist .mypy_cache .ruff_cache .hypothesis .pytest_cache

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "expkit needs Python 3.11 or newer; pass one as PYTHON=python3.12" >&2; exit 3; }
	$(PYTHON) -m venv .venv

.venv/base: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) -e .
	@touch $@

.venv/test: .venv/base
	$(PIP) -e '.[test]'
	@touch $@

.venv/lint: .venv/test
	$(PIP) -e '.[lint]'
	@touch $@
