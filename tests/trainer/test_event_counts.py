"""How often each event comes, by table: cheap, and catches most of what can go wrong with a loop."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest

from expkit.trainer.algorithm import Algorithm
from expkit.trainer.event import Event
from tests.trainer.doubles import batches, recorder, trainer


@dataclass
class Closure(Algorithm):
    needs_closure = True


def counted(*calls: str, **settings: Any) -> Counter[str]:
    listener = recorder()
    t = trainer(callbacks=[listener], **settings)
    for call in calls or ("fit",):
        name, _, argument = call.partition(" ")
        arguments = [batches(3)] if name == "predict" else [argument] if argument else []
        getattr(t, name)(*arguments)
    return Counter(event.value for event in listener.seen)


def expected(*, epochs: int, batches: int, **others: int) -> dict[str, int]:
    """What Composer's own test asserts, but for BEFORE_DATALOADER: ours comes only where a batch does."""
    per_batch = ("before_dataloader", "after_dataloader", "batch_start", "batch_end", "batch_checkpoint",
                 "before_train_batch", "after_train_batch")  # fmt: skip
    per_microbatch = ("before_forward", "after_forward", "before_loss", "after_loss", "before_backward",
                      "after_backward")  # fmt: skip
    once = ("init", "before_load", "after_load", "fit_start", "fit_end", "iteration_start", "iteration_end",
            "iteration_checkpoint")  # fmt: skip
    per_epoch = ("epoch_start", "epoch_end", "epoch_checkpoint")
    microbatches = others.pop("microbatches", batches)
    counts = {**dict.fromkeys(once, 1), **dict.fromkeys(per_batch, batches), **dict.fromkeys(per_epoch, epochs),
              **dict.fromkeys(per_microbatch, microbatches)}  # fmt: skip
    return {event: n for event, n in (counts | others).items() if n}


def evaluations(times: int, evaluators: int, batches: int) -> dict[str, int]:
    """Counts of so many evaluations, each of so many evaluators with so many batches in all."""
    return {
        **dict.fromkeys(("eval_before_all", "eval_after_all"), times),
        **dict.fromkeys(("eval_start", "eval_end"), times * evaluators),
        **dict.fromkeys(("eval_batch_start", "eval_before_forward", "eval_after_forward", "eval_batch_end"),
                        times * batches),
    }  # fmt: skip


STANDALONE = {**evaluations(1, 1, 2), "eval_before_all": 0, "eval_after_all": 0, "eval_standalone_start": 1,
              "eval_standalone_end": 1}  # fmt: skip
PREDICT = {"predict_start": 1, "predict_end": 1, **dict.fromkeys(
    ("predict_batch_start", "predict_before_forward", "predict_after_forward", "predict_batch_end"), 3)}  # fmt: skip
TABLE: list[tuple[str, list[str], dict[str, Any], dict[str, int]]] = [
    ("epochs", [], {"max_duration": "3ep"}, expected(epochs=3, batches=12)),
    ("one batch", [], {"max_duration": "1ba"}, expected(epochs=0, batches=1, epoch_start=1)),
    ("ends inside an epoch", [], {"max_duration": "6ba"}, expected(epochs=1, batches=6, epoch_start=2)),
    ("part of an epoch", [], {"max_duration": "1.3ep"}, expected(epochs=1, batches=6, epoch_start=2)),
    ("samples", [], {"max_duration": "31sp"}, expected(epochs=1, batches=6, epoch_start=2)),
    ("ends with an epoch", [], {"max_duration": "8ba"}, expected(epochs=2, batches=8)),
    ("microbatches", [], {"device_train_microbatch_size": 2}, expected(epochs=2, batches=8, microbatches=24)),
    ("uneven microbatches", [], {"device_train_microbatch_size": 4}, expected(epochs=2, batches=8, microbatches=16)),
    ("a microbatch larger than a batch", [], {"device_train_microbatch_size": 9}, expected(epochs=2, batches=8)),
    ("an uneven last batch", [], {"train_dataloader": batches(4, last=1), "device_train_microbatch_size": 2},
     expected(epochs=2, batches=8, microbatches=2 * (3 * 3 + 1))),
    ("a subset", [], {"train_subset_num_batches": 3}, expected(epochs=2, batches=6)),
    ("evaluation each epoch", [], {"eval_dataloader": batches(2)},
     expected(epochs=2, batches=8, **evaluations(2, 1, 2))),
    ("evaluation inside epochs", [], {"eval_dataloader": batches(2), "eval_interval": "3ba"},
     expected(epochs=2, batches=8, **evaluations(3, 1, 2))),  # after 3, 6 and the last
    ("evaluation of shares", [], {"eval_dataloader": batches(2), "eval_interval": "0.25dur"},
     expected(epochs=2, batches=8, **evaluations(4, 1, 2))),
    ("two evaluators", [], {"eval_dataloader": {"a": batches(2), "b": batches(1)}},
     expected(epochs=2, batches=8, **evaluations(2, 2, 3))),
    ("a subset of an evaluator", [], {"eval_dataloader": batches(5), "eval_subset_num_batches": 2},
     expected(epochs=2, batches=8, **evaluations(2, 1, 2))),
    ("iterations", [], {"iteration_length": "3ba"},
     expected(epochs=2, batches=8, iteration_start=3, iteration_end=2, iteration_checkpoint=2)),
    ("iterations of epochs", [], {"iteration_length": "1ep"},
     expected(epochs=2, batches=8, iteration_start=2, iteration_end=2, iteration_checkpoint=2)),
    ("an iteration longer than training", [], {"iteration_length": "3ep"},
     expected(epochs=2, batches=8, iteration_end=0, iteration_checkpoint=0)),
    ("a closure", [], {"algorithms": [Closure()], "device_train_microbatch_size": 3},
     expected(epochs=2, batches=8, microbatches=16)),
    ("two fits", ["fit", "fit 1ep"], {}, expected(epochs=3, batches=12, fit_start=2, fit_end=2, iteration_start=2,
                                                  iteration_end=2, iteration_checkpoint=2)),
    ("two fits that meet inside an epoch", ["fit", "fit 2ba"], {"max_duration": "2ba"},
     expected(epochs=1, batches=4, fit_start=2, fit_end=2, iteration_start=2, iteration_end=2, iteration_checkpoint=2)),
    ("evaluation alone", ["eval", "fit"], {"eval_dataloader": batches(2), "eval_interval": "9ep"},
     expected(epochs=2, batches=8, **{e: n + STANDALONE.get(e, 0) for e, n in evaluations(1, 1, 2).items()},
              eval_standalone_start=1, eval_standalone_end=1)),
    ("prediction", ["predict", "fit"], {}, expected(epochs=2, batches=8, **PREDICT)),
]  # fmt: skip


@pytest.mark.parametrize(("calls", "settings", "counts"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_counts(calls: list[str], settings: dict[str, Any], counts: dict[str, int]) -> None:
    assert counted(*calls, **settings) == counts


def test_a_closure_called_twice_trains_each_batch_twice_and_counts_it_once() -> None:
    """Composer with SAM: whatever lies inside the closure comes twice for one batch."""
    import torch

    from expkit.trainer.trainer import Trainer
    from tests.trainer.doubles import net

    class Twice(torch.optim.SGD):
        def step(self, closure: Any = None) -> Any:
            closure()
            return super().step(closure)

    listener, model = recorder(), net()
    Trainer(model=model, train_dataloader=batches(4), optimizers=Twice(model.parameters(), lr=0.1), device="cpu",
            max_duration="1ep", algorithms=[Closure()], callbacks=[listener]).fit()  # fmt: skip
    count = Counter(listener.seen)
    assert count[Event.BEFORE_TRAIN_BATCH] == count[Event.AFTER_BACKWARD] == count[Event.AFTER_TRAIN_BATCH] == 8
    assert count[Event.BATCH_START] == count[Event.AFTER_DATALOADER] == count[Event.BATCH_END] == 4
