"""What the worker prints: one structured event per line, each written in one go."""

import sys
from collections.abc import Mapping
from typing import BinaryIO, Protocol

import msgspec


class EventSink(Protocol):
    """Prints one event; fields that are None are left out."""

    def __call__(self, kind: str, /, **fields: object) -> None: ...


class PrintedEvents:
    """Events on a stream, standard output by default."""

    def __init__(self, stream: BinaryIO | None = None) -> None:
        self._stream = stream or sys.stdout.buffer

    def __call__(self, kind: str, /, **fields: object) -> None:
        """Print ``{"subagents": kind, …}``; field names are those on the wire."""
        given: Mapping[str, object] = {k: v for k, v in fields.items() if v is not None}
        line = msgspec.json.encode({"subagents": kind, **given}, enc_hook=str)
        self._stream.write(line + b"\n")
        self._stream.flush()
