"""Lines for a worker's standard input, sent once each, whoever dies in between.

``sent`` is the log: one JSON object per line with a key and the text. ``in`` holds the texts alone
and is what the shim feeds to the worker. The log is written first, so that whatever part of a line
reached ``in`` before a crash is completed from it, and never written twice.

Nothing calls fsync: after a power cut the worker is gone as well.
"""

import os
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from subagents.extensions.conversation.dialect import InputLine

IN: Final = "in"
SENT: Final = "sent"


class _Sent(msgspec.Struct, frozen=True):
    key: str
    text: str


_DECODER: Final = msgspec.json.Decoder(_Sent)


class WorkerInput:
    """The input of one turn of one attempt. Blocking; safe for several threads of one process.

    Args:
        directory: The turn's.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock = threading.Lock()
        self._keys: set[str] | None = None

    def send(self, input_lines: Iterable[InputLine]) -> None:
        """Append those whose keys were not sent before.

        Raises:
            OSError: Not all were sent (a full disk, no directory); repeat it.
        """
        with self._lock:
            keys = self._recovered()
            new = [input_line for input_line in input_lines if input_line.key not in keys]
            for input_line in new:
                if input_line.key not in keys:
                    self._append(input_line)
                    keys.add(input_line.key)

    def _append(self, input_line: InputLine) -> None:
        text = input_line.line.decode("utf-8", "replace").replace("\n", " ")
        try:
            _write(self._directory / SENT, msgspec.json.encode(_Sent(input_line.key, text)) + b"\n")
            _write(self._directory / IN, text.encode() + b"\n")
        except OSError:
            self._keys = None  # read again before anything else is sent
            raise

    def _recovered(self) -> set[str]:
        """The keys that were sent, after completing what a crash left half done."""
        if self._keys is None:
            sent = _whole_lines(self._directory / SENT)
            texts = b"".join(each.text.encode() + b"\n" for each in sent)
            path = self._directory / IN
            written = path.stat().st_size
            if written < len(texts):
                _write(path, texts[written:])
            self._keys = {each.key for each in sent}
        return self._keys


def first_input(input_lines: Iterable[InputLine]) -> dict[str, bytes]:
    """The files of a turn that begins with these lines."""
    texts = [(each.key, each.line.decode("utf-8", "replace")) for each in input_lines]
    return {
        IN: "".join(f"{text}\n" for _, text in texts).encode(),
        SENT: b"".join(msgspec.json.encode(_Sent(key, text)) + b"\n" for key, text in texts),
    }


def _whole_lines(path: Path) -> list[_Sent]:
    """What the log holds; the half of a line at its end was never sent, and is cut off."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    end = data.rfind(b"\n") + 1
    if end < len(data):
        os.truncate(path, end)
    return [_DECODER.decode(line) for line in data[:end].splitlines()]


def _write(path: Path, data: bytes) -> None:
    with path.open("ab", buffering=0) as file:
        view = memoryview(data)
        while view:
            view = view[file.write(view) or 0 :]
