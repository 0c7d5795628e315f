"""Suite of algorithms: what acts on training."""

from __future__ import annotations

import io
import math

import torch

from expkit.testing.training import bench_for, fresh, train
from expkit.trainer.algorithm import Algorithm


def names_its_source(algorithm: Algorithm) -> None:
    """A method says where it comes from."""
    assert algorithm.paper, f"{type(algorithm).__name__} names no paper"


def declares_names_of_algorithms(algorithm: Algorithm) -> None:
    """Conflicts and order are sets of names."""
    for declared in (algorithm.conflicts, algorithm.before, algorithm.after):
        assert isinstance(declared, frozenset) and all(isinstance(name, str) for name in declared)


def trains_to_finite_numbers(algorithm: Algorithm) -> None:
    """A few batches and two evaluations, all numbers finite."""
    done = train([fresh(algorithm)])
    assert all(map(math.isfinite, done.losses)), f"losses {done.losses}"
    assert all(bool(torch.isfinite(w).all()) for w in done.weights.values() if w.is_floating_point())


def leaves_the_batch_as_found(algorithm: Algorithm) -> None:
    """Tensors of the loader are never written to, and metrics find the targets that the data set gave."""
    done = train([fresh(algorithm)])
    for given, loaded in zip(done.given, done.loaded, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(given, loaded, strict=True)), "the loader's tensors were changed"
    if not algorithm.changes_batch:
        for given, targets in zip(done.given, done.targets, strict=True):
            assert torch.equal(given[1], targets), "the targets were not put back"


def is_deterministic(algorithm: Algorithm) -> None:
    """Twice the same seed, twice the same bits, whatever was drawn from torch's generator before."""
    torch.rand(3)
    once, again = train([fresh(algorithm)]), train([fresh(algorithm)])
    assert once.losses == again.losses
    assert all(torch.equal(w, again.weights[name]) for name, w in once.weights.items())


def changes_no_other_stream(algorithm: Algorithm) -> None:
    """With the method on, the data come in the same order and other purposes draw the same numbers."""
    without, with_it = train(bench=bench_for(algorithm)), train([fresh(algorithm)])
    for (a, b), (c, d) in zip(without.given, with_it.given, strict=True):
        assert torch.equal(a, c) and torch.equal(b, d), "the order of the data moved"
    assert without.draws == with_it.draws, "another purpose drew other numbers"


def in_parts_as_in_one(algorithm: Algorithm) -> None:
    """Where it says so, a batch in microbatches trains as the batch in one, to rounding; no batch statistics here."""
    if algorithm.exact_under_microbatching:
        network = bench_for(algorithm).without_statistics
        whole = train([fresh(algorithm)], model=network())
        parts = train([fresh(algorithm)], model=network(), microbatch=3)
        for name, weight in whole.weights.items():
            torch.testing.assert_close(parts.weights[name], weight, rtol=1e-4, atol=1e-6)


def keeps_plain_state(algorithm: Algorithm) -> None:
    """Its state is plain types and tensors, which a checkpoint can be read from without running code."""
    used = fresh(algorithm)
    train([used])
    file = io.BytesIO()
    torch.save(used.state_dict(), file)
    file.seek(0)
    loaded = torch.load(file, weights_only=True)
    resumed = fresh(algorithm)
    resumed.load_state_dict(loaded)


def serves_a_second_training(algorithm: Algorithm) -> None:
    """One that was part of another training before trains as a new one does: nothing of that is left in it."""
    used = fresh(algorithm)
    train([used], seed=2)
    once, again = train([fresh(algorithm)]), train([used])
    assert once.losses == again.losses, f"losses are {again.losses} in a second training, but {once.losses} in a first"
    assert once.metrics == again.metrics, f"metrics are {again.metrics}, but {once.metrics} in a first training"
    assert all(torch.equal(w, again.weights[name]) for name, w in once.weights.items()), "it ends with other weights"
