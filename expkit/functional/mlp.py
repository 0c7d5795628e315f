"""A multilayer perceptron: flatten, then linear layers with ReLU between them; as quick as a network can be."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from expkit.functional.flops import training_flops
from expkit.functional.losses import soft_cross_entropy
from expkit.functional.metrics import Mean, classification


class MLP(nn.Module):
    """A classifier over inputs of any shape with `num_inputs` numbers a sample."""

    def __init__(self, num_inputs: int, hidden: Sequence[int], num_classes: int, dropout: float = 0.0) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Flatten()]
        for width in hidden:
            layers += [nn.Linear(num_inputs, width), nn.ReLU(inplace=True)]
            layers += [nn.Dropout(dropout)] if dropout else []
            num_inputs = width
        self.layers = nn.Sequential(*layers, nn.Linear(num_inputs, num_classes))

    def forward(self, inputs: Tensor) -> Tensor:
        return self.layers(inputs)  # type: ignore[no-any-return]

    def loss(self, outputs: Tensor, targets: Tensor, reduction: str = "mean") -> Tensor:
        """Mean cross-entropy of the batch in nats; `none` gives that of each sample."""
        return soft_cross_entropy(outputs, targets, reduction)

    def flops_per_batch(self, batch: tuple[Tensor, Tensor]) -> float:
        """Floating-point operations of a training step on this batch."""
        return training_flops(self, batch[0])

    def metrics(self) -> dict[str, Mean]:
        """Fresh accuracy and cross-entropy."""
        return classification()
