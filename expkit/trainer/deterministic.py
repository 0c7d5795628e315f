"""Deterministic mode: only operations that give the same bits every time, or an error that names the one that does not.

Costs speed. CPU kernels are deterministic without it, at a fixed number of threads.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import torch

_WORKSPACE = "CUBLAS_WORKSPACE_CONFIG"  # cuBLAS reads it when its first handle is made


@contextlib.contextmanager
def deterministic(wanted: bool) -> Iterator[None]:
    """In force inside, where `wanted`; afterwards every switch is as it was, also after an error."""
    if not wanted:
        yield
        return
    cudnn, workspace = torch.backends.cudnn, os.environ.get(_WORKSPACE)
    kept = (torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled())
    kept_cudnn = (cudnn.deterministic, cudnn.benchmark)
    try:
        os.environ.setdefault(_WORKSPACE, ":4096:8")
        cudnn.deterministic, cudnn.benchmark = True, False
        torch.use_deterministic_algorithms(True)
        yield
    finally:
        torch.use_deterministic_algorithms(kept[0], warn_only=kept[1])
        cudnn.deterministic, cudnn.benchmark = kept_cudnn
        if workspace is None:
            os.environ.pop(_WORKSPACE, None)
