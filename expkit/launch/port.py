"""Port: a free TCP port on this machine that nobody else is given while we hold it.

It is bound but never listened on, with SO_REUSEADDR, so the kernel gives it to no other that asks for a free one, and
the first rank may still bind and listen there (it sets SO_REUSEADDR as well; Linux lets both, as only one listens).
"""

from __future__ import annotations

import socket
from types import TracebackType
from typing import Self


class Port:
    """`with Port() as port: port.number`; or `close` it when the job is over."""

    def __init__(self, address: str = "127.0.0.1") -> None:
        self._held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._held.bind((address, 0))
        self.number: int = self._held.getsockname()[1]

    def close(self) -> None:
        """Let others have it."""
        self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
