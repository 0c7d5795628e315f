"""Out of memory: how to tell it from other errors. No torch here, so that whoever starts trials can ask as well."""

from __future__ import annotations

_TEXTS = (
    "can't allocate memory",  # DefaultCPUAllocator, a plain RuntimeError
    "could not create a primitive",  # oneDNN
    "out of memory",  # CUDA, HIP, and whatever speaks English
    "ALLOC_FAILED",  # cuBLAS, cuDNN
    "error return without exception set",  # an import or a call that had no memory for its own error: SystemError
    "NULL without setting an exception",
)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether this error, or the one that it was raised from, says that memory ran out."""
    if isinstance(error, MemoryError):  # numpy's is a subclass
        return True
    if isinstance(error, RuntimeError | SystemError) and any(text in str(error) for text in _TEXTS):
        return True
    return error.__cause__ is not None and is_out_of_memory(error.__cause__)
