from typing import Any


def __getattr__(name: str) -> Any:
    if name == "scale_pytorch_scheduler":
        from expkit.functional.torch_schedules import scale_pytorch_scheduler  # loads torch

        return scale_pytorch_scheduler
    raise AttributeError(f"module 'expkit.functional' has no attribute {name!r}")
