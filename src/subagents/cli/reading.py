"""Reads answers without the structs of the wire: making those takes longer than most commands.

A daemon of this version says everything that the structs declare, under the same names; what has a
default there, for older daemons, is never missing. So an answer of this version is read as it came,
and any other one through its struct.
"""

from importlib import import_module
from typing import Any, Final

from subagents.api.wire.words import shown_state
from subagents.client.client import Client, Document
from subagents.version import __version__

WIRE: Final = "subagents.api.wire"


def read(client: Client, document: Document, kind: str) -> Any:
    """An answer with the attributes of its struct, ``kind``: ``module:Name`` below ``api/wire``.

    Raises:
        DaemonUnreachable: It is of another version, and not what this one expects.
    """
    if client.daemon_version == __version__:
        return Answer(document)
    from subagents.api.wire.wire_struct import read as as_struct  # noqa: PLC0415

    module, _, name = kind.partition(":")
    return as_struct(document, getattr(import_module(f"{WIRE}.{module}"), name))


class Answer:
    """A part of an answer: ``run_id`` is its ``runId``; what the daemon left out is None."""

    __slots__ = ("_document",)

    def __init__(self, document: Document) -> None:
        self._document = document

    def __getattr__(self, name: str) -> Any:
        first, *others = name.split("_")
        found = self._document.get("".join([first, *map(str.capitalize, others)]))
        if isinstance(found, dict):
            return Answer(found)
        if isinstance(found, list):
            return [Answer(each) if isinstance(each, dict) else each for each in found]
        return found

    @property
    def is_ok(self) -> bool:
        """As ``Outcome`` has it."""
        return bool(self.status == "ok")

    @property
    def shown_state(self) -> str:
        """As ``RunHead`` has it."""
        return shown_state(self)
