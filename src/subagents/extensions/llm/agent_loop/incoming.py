"""What comes in while the worker works: messages, and the wish that it ends its turn.

Lines of JSON on standard input: ``{"type":"message","key":…,"text":…}``, ``{"type":"interrupt"}``.
Anything else is left aside.
"""

import asyncio
import contextlib
import os
import select
from collections import deque
from typing import Final

import msgspec

CHUNK_BYTES: Final = 64 * 1024


class IncomingMessage(msgspec.Struct, frozen=True, tag="message"):
    """For the conversation; its key is printed when it is in."""

    key: str
    text: str


class Interrupt(msgspec.Struct, frozen=True, tag="interrupt"):
    """End the turn."""


_DECODER: Final[msgspec.json.Decoder[IncomingMessage | Interrupt]] = msgspec.json.Decoder(
    IncomingMessage | Interrupt
)


class Incoming:
    """Reads a descriptor from within the running loop.

    Args:
        descriptor: Standard input, unless a test says otherwise.
    """

    def __init__(self, descriptor: int = 0) -> None:
        self.interrupted = asyncio.Event()
        self._descriptor = descriptor
        self._messages: deque[IncomingMessage] = deque()
        self._keys: set[str] = set()
        self._rest = b""
        self._is_open = True
        self._loop = asyncio.get_running_loop()
        try:
            self._loop.add_reader(descriptor, self._read)
        except (PermissionError, OSError):
            # A regular file, or closed: whatever it holds is there already.
            self._read_all()

    @property
    def has_messages(self) -> bool:
        return bool(self._messages)

    def has_new(self) -> bool:
        """Whether a message came that was not taken, also one that is only just readable."""
        while self._is_open and select.select([self._descriptor], [], [], 0)[0]:
            self._read()
        return bool(self._messages)

    def take(self) -> list[IncomingMessage]:
        """Every message that came and was not taken."""
        self.has_new()
        found = list(self._messages)
        self._messages.clear()
        return found

    def close(self) -> None:
        """Read no more. Idempotent."""
        if self._is_open:
            self._is_open = False
            with contextlib.suppress(OSError, ValueError):
                self._loop.remove_reader(self._descriptor)

    def _read(self) -> None:
        try:
            data = os.read(self._descriptor, CHUNK_BYTES)
        except OSError:
            data = b""
        if not data:
            self.close()
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._add(line)

    def _read_all(self) -> None:
        while self._is_open:
            self._read()

    def _add(self, line: bytes) -> None:
        try:
            found = _DECODER.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return
        if isinstance(found, Interrupt):
            self.interrupted.set()
        elif found.key not in self._keys:
            self._keys.add(found.key)
            self._messages.append(found)
