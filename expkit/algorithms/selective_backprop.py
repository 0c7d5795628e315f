"""Selective backprop: easy samples are not trained on, so that the backward pass has less to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from expkit.trainer.algorithm import Algorithm


@dataclass
class SelectiveBackprop(Algorithm):
    """Trains on part of each batch, drawn so that samples with a high loss are likelier; costs a forward pass more.

    The loss of the model is the mean over samples; where it takes `reduction="none"` (ours and torch's do), scoring is
    one call, and one a sample where it is made from the whole batch. While it selects, `train/loss` is that of the
    samples chosen, so the series jumps up; compare evaluations.
    Choosing comes before the batch is split, so a batch in parts trains on the same samples as the batch in one.
    """

    before = frozenset({"channels_last", "colout", "progressive_resizing", "seq_length_warmup"})
    changes_batch = True
    paper = "Jiang et al. 2019, Accelerating Deep Learning by Focusing on the Biggest Losers, arXiv 1910.00762"

    start: Annotated[float, Field(ge=0, le=1)] = 0.5
    """Share of training after which samples are selected."""
    end: Annotated[float, Field(ge=0, le=1)] = 0.9
    """Share of training after which batches are whole again."""
    keep: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Share of a batch that is trained on; 1 changes nothing."""
    scale_factor: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Scale of height and width of the images that are scored, for models that take any size; 1 scores them whole."""
    interrupt: Annotated[int, Field(ge=0)] = 2
    """Every so many batches of an epoch one is trained whole: 2 takes turns, 0 never does, 1 always, to no effect."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.start >= self.end:
            raise ValueError(f"start must be below end, but got {self.start} and {self.end}")

    def after_dataloader(self, state: Any, logger: Any) -> None:
        from expkit.functional import selective_backprop as functional
        from expkit.trainer.batch import take

        now = state.timestamp.batch_in_epoch
        if self.keep == 1 or state.num_samples < 2:
            return
        if functional.is_due(state.progress, now, self.start, self.end, self.interrupt):
            rng = state.rng("selective_backprop", state.rank, state.timestamp.batch)  # other ranks have other samples
            chosen = functional.select(self._losses(state), self.keep, rng).to(state.device)
            state.batch = take(state.batch, chosen)
            self.effective = True

    def _losses(self, state: Any) -> Any:
        """Of each sample, (N,); the state's batch is put back."""
        import torch

        from expkit.functional import selective_backprop as functional
        from expkit.trainer.precision import autocast

        whole, losses = state.batch, []
        with functional.scoring(state.model), autocast(state.device, state.precision):
            for part in state.data.split(whole, state.microbatch_size or state.num_samples):
                state.batch = part
                if self.scale_factor < 1:
                    state.inputs = functional.shrink(state.inputs, self.scale_factor)
                losses.append(self._losses_of_part(state))
        state.batch, state.outputs = whole, None
        return torch.cat(losses)

    def _losses_of_part(self, state: Any) -> Any:
        """By one call where outputs and targets are tensors, else one sample after the other."""
        import torch

        from expkit.functional.selective_backprop import losses_of
        from expkit.trainer.calling import forward, takes_batch
        from expkit.trainer.losses import loss

        state.outputs = forward(state)
        tensors = isinstance(state.outputs, torch.Tensor) and isinstance(state.targets, torch.Tensor)
        if tensors and not takes_batch(state.loss_fn):
            return losses_of(state.loss_fn, state.outputs, state.targets)
        losses = []
        for sample in state.data.split(state.batch, 1):
            state.batch = sample
            state.outputs = forward(state)
            losses.append(loss(state))
        return torch.stack(losses)
