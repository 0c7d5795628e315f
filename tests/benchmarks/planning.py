"""What planning costs: counting 1 M trials, listing 1 M points without ids in flat memory, ids. Run it by itself.

Bars: count in 1 s, list in 10 s, at most 60 microseconds an id. Printed in seconds of CPU time; exit code 1 where a
bar is missed.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

from expkit.plan.count import count
from expkit.plan.expand import expand, slots
from expkit.spec.sweep import Sweep
from expkit.spec.sweep_file import load_sweep

ROOT = Path(__file__).parents[2]
SHAPES = {
    "methods": "ablate: {{candidates: {{{many}}}}}\nseeds: 1\n",
    "seeds": "ablate: {{candidates: {{ema: {{half_life: 3ba}}}}}}\nseeds: 100000\n"
    "parameters: {{trainer.ssr: [1, 0.5, 2, 4, 5]}}\n",
    "values": "seeds: 1\nparameters: {{trainer.ssr: [{rates}], optimizer.sgd.weight_decay: [{rates}]}}\n",
    "pairs": "ablate: {{candidates: {{{more}}}, design: pairwise}}\nseeds: 50\n",
    "fraction": "ablate: {{candidates: {{{ten}}}, design: {{fractional: {{resolution: 5}}}}}}\nseeds: 2000\n"
    "budgets: {{ssr: [0.25, 0.5, 1, 2]}}\n",
    "orders": "ablate: {{candidates: {{{many}}}, design: {{shapley: {{permutations: 1000}}}}}}\nseeds: 60\n",
}


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        missed = [what for name in SHAPES for what in _measure(name, _sweep(Path(folder), name))]
    print("\n".join(f"missed: {what}" for what in missed) or "all bars are met")
    return bool(missed)


def _sweep(folder: Path, shape: str) -> Sweep:
    methods = [f'"py:mylab.m:T{i}": {{}}' for i in range(200)]
    rates = ", ".join(f"{i + 1}e-4" for i in range(1000))
    some = {"ten": methods[:10], "many": methods[:20], "more": methods}
    text = SHAPES[shape].format(**{name: ", ".join(listed) for name, listed in some.items()}, rates=rates)
    path = folder / f"{shape}.yaml"
    path.write_text(f"version: 1\nname: {shape}\nrecipe: {ROOT}/recipes/fashion_resnet.yaml\n{text}")
    return load_sweep(path, trust_imports=["mylab.*"])


def _measure(name: str, sweep: Sweep) -> list[str]:
    trials, count_s = _timed(lambda: count(sweep).trials)
    listed, list_s = _timed(lambda: sum(1 for _ in itertools.islice(slots(sweep), 1_000_000)))
    growth_bytes = _growth(sweep)
    cells = expand(sweep)
    next(cells)  # codes of the first block are listed here
    made, ids_s = _timed(lambda: sum(1 for _ in itertools.islice(cells, 5_000)))
    print(f"{name:>8}: {trials:>9,} trials counted in {count_s:.3f} s; {listed:,} listed in {list_s:.2f} s;")
    print(f"{'':>10}{growth_bytes / 2**20:.1f} MiB more at 500,000 than at 100,000; {ids_s / made * 1e6:.0f} us an id")
    bars = {
        "count": count_s <= 1.0,
        "list": list_s <= 10.0,
        "memory": growth_bytes < 2**20,
        "ids": ids_s / made < 60e-6,
    }
    return [f"{name} {bar}" for bar, met in bars.items() if not met]


def _timed(work: Callable[[], int]) -> tuple[int, float]:
    start = time.process_time()
    return work(), time.process_time() - start


def _growth(sweep: Sweep) -> int:
    """How much more memory the second 400,000 places of the run order hold than the first 100,000."""
    order = slots(sweep)
    tracemalloc.start()
    for _ in itertools.islice(order, 100_000):
        pass
    before = tracemalloc.get_traced_memory()[0]
    for _ in itertools.islice(order, 400_000):
        pass
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return after - before


if __name__ == "__main__":
    sys.exit(main())
