"""Events: the moments of training that algorithms and callbacks can name, and the one map of when they come.

Trainer(...):
    INIT
    BEFORE_LOAD
    AFTER_LOAD
fit():
    FIT_START
    for each batch:
        if an iteration begins:
            ITERATION_START
        if an epoch begins:
            EPOCH_START
        BEFORE_DATALOADER
        AFTER_DATALOADER
        BATCH_START
        BEFORE_TRAIN_BATCH
        for each microbatch:
            BEFORE_FORWARD
            AFTER_FORWARD
            BEFORE_LOSS
            AFTER_LOSS
            BEFORE_BACKWARD
            AFTER_BACKWARD
        AFTER_TRAIN_BATCH
        BATCH_END
        if evaluation is due:
            EVAL_BEFORE_ALL
            for each evaluator:
                EVAL_START
                for each evaluation batch:
                    EVAL_BATCH_START
                    EVAL_BEFORE_FORWARD
                    EVAL_AFTER_FORWARD
                    EVAL_BATCH_END
                EVAL_END
            EVAL_AFTER_ALL
        BATCH_CHECKPOINT
        if the epoch ends:
            EPOCH_END
            EPOCH_CHECKPOINT
        if the iteration ends:
            ITERATION_END
            ITERATION_CHECKPOINT
    FIT_END
eval():
    EVAL_STANDALONE_START
    for each evaluator:
        EVAL_START
        for each evaluation batch:
            EVAL_BATCH_START
            EVAL_BEFORE_FORWARD
            EVAL_AFTER_FORWARD
            EVAL_BATCH_END
        EVAL_END
    EVAL_STANDALONE_END
predict():
    PREDICT_START
    for each batch:
        PREDICT_BATCH_START
        PREDICT_BEFORE_FORWARD
        PREDICT_AFTER_FORWARD
        PREDICT_BATCH_END
    PREDICT_END

How to read it:
- The optimizer steps between AFTER_TRAIN_BATCH and BATCH_END, so BATCH_END counts the batch just done.
- The last evaluation is due at the last batch, hence before FIT_END; no batch is evaluated twice.
- An iteration ends with the first batch at or after each multiple of `iteration_length`, in the middle of an epoch or
  with it; epochs and data go on undisturbed. Without a length one iteration is a fit, and ends with it.
- An epoch or iteration left in the middle has no end; the next fit goes on inside it, without a second start.
- Where an exception ends a fit, FIT_ERROR comes in place of all that would have followed.
- With an algorithm that needs a closure, BEFORE_TRAIN_BATCH to AFTER_TRAIN_BATCH come once per call of the closure.
"""

from __future__ import annotations

from enum import StrEnum


class Event(StrEnum):
    """A moment of training; the value is the name of the method that listens to it."""

    INIT = "init"
    BEFORE_LOAD = "before_load"
    AFTER_LOAD = "after_load"
    FIT_START = "fit_start"
    ITERATION_START = "iteration_start"
    EPOCH_START = "epoch_start"
    BEFORE_DATALOADER = "before_dataloader"
    AFTER_DATALOADER = "after_dataloader"
    BATCH_START = "batch_start"
    BEFORE_TRAIN_BATCH = "before_train_batch"
    BEFORE_FORWARD = "before_forward"
    AFTER_FORWARD = "after_forward"
    BEFORE_LOSS = "before_loss"
    AFTER_LOSS = "after_loss"
    BEFORE_BACKWARD = "before_backward"
    AFTER_BACKWARD = "after_backward"
    AFTER_TRAIN_BATCH = "after_train_batch"
    BATCH_END = "batch_end"
    BATCH_CHECKPOINT = "batch_checkpoint"
    EPOCH_END = "epoch_end"
    EPOCH_CHECKPOINT = "epoch_checkpoint"
    ITERATION_END = "iteration_end"
    ITERATION_CHECKPOINT = "iteration_checkpoint"
    FIT_END = "fit_end"
    FIT_ERROR = "fit_error"
    EVAL_BEFORE_ALL = "eval_before_all"
    EVAL_START = "eval_start"
    EVAL_BATCH_START = "eval_batch_start"
    EVAL_BEFORE_FORWARD = "eval_before_forward"
    EVAL_AFTER_FORWARD = "eval_after_forward"
    EVAL_BATCH_END = "eval_batch_end"
    EVAL_END = "eval_end"
    EVAL_AFTER_ALL = "eval_after_all"
    EVAL_STANDALONE_START = "eval_standalone_start"
    EVAL_STANDALONE_END = "eval_standalone_end"
    PREDICT_START = "predict_start"
    PREDICT_BATCH_START = "predict_batch_start"
    PREDICT_BEFORE_FORWARD = "predict_before_forward"
    PREDICT_AFTER_FORWARD = "predict_after_forward"
    PREDICT_BATCH_END = "predict_batch_end"
    PREDICT_END = "predict_end"


REVERSED = frozenset({
    Event.AFTER_LOAD, Event.AFTER_FORWARD, Event.AFTER_LOSS, Event.AFTER_BACKWARD, Event.AFTER_TRAIN_BATCH,
    Event.EVAL_AFTER_FORWARD, Event.EVAL_AFTER_ALL, Event.PREDICT_AFTER_FORWARD,
})  # fmt: skip
"""Second halves of true before/after pairs: whoever came first on the way in leaves last. AFTER_DATALOADER is none:
it is where batches are changed, one method after the other."""
