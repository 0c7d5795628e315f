from typing import Any

from expkit import plugins
from expkit.schedulers import _composer

_ours = plugins.by_class_name("schedulers")


def __getattr__(name: str) -> Any:
    return _composer.maker(name) or _ours(name)
