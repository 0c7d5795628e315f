"""Weigh: how large a checkpoint of a model and its optimizer is, without memory for either. A process of its own.

`echo '{"model": ["resnet", {"depth": 8}], "optimizer": ["sgd", {"momentum": 0.9}]}' | python -P -m expkit.launch.weigh`
prints `{"parameters": 19434, "bytes": 158000}`. Costs the import of torch, 2 s, which whoever plans need not pay.
"""

from __future__ import annotations

import json
import sys
from typing import Any, cast

import torch

from expkit import plugins
from expkit.trainer.contracts import Model, Optimizer

REST_BYTES = 35_000
"""Generators, counters and manifest; measured."""


def main() -> int:
    """Read what is to be weighed, write what it weighs."""
    asked = json.load(sys.stdin)
    print(json.dumps(weigh(asked["model"], asked["optimizer"])))  # noqa: T201
    return 0


def weigh(model: tuple[str, dict[str, Any]], optimizer: tuple[str, dict[str, Any]]) -> dict[str, int]:
    """Parameters, and bytes of weights, buffers and what the optimizer keeps after a step; by name and settings."""
    with torch.device("meta"):  # shapes without numbers
        module = cast(Model, plugins.build("models", *model)).build()
        built = cast(Optimizer, plugins.build("optimizers", *optimizer)).build(module.parameters())
        for parameter in module.parameters():
            parameter.grad = torch.zeros_like(parameter)
        built.step()
    tensors = [*module.state_dict().values()]
    tensors += [value for kept in built.state.values() for value in kept.values() if isinstance(value, torch.Tensor)]
    num_bytes = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
    return {"parameters": sum(p.numel() for p in module.parameters()), "bytes": num_bytes + REST_BYTES}


if __name__ == "__main__":
    sys.exit(main())
