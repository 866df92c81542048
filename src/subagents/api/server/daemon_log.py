"""The daemon's own log: lines of JSON in a file of bounded size, for people too on a terminal.

One object per line: ``ts`` (UTC), ``level``, ``logger``, ``message``, and where they are known
``run_id`` and ``exception``. Secrets of a known shape are left out. The standard library's
``logging`` carries it: a second logging library would cost every start what one formatter does.
"""

import contextlib
import logging
import os
import re
import sys
import threading
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import IO, Final

import msgspec

from subagents.domain.redaction.redact import MARGIN_BYTES, redact

LOGGERS: Final = {"subagents": logging.INFO, "uvicorn": logging.WARNING, "asyncio": logging.WARNING}
"""Not the root: an embedding program's own lines do not belong into our file."""
SILENT: Final = "opentelemetry"
"""Says every failed try; ``followers.journal_export`` says each outage once."""
TEXT_CHARS_MAX: Final = 64 * 1024
"""The longest message or exception; what a runtime or a caller sent can stand in either."""
RUN_ID: Final = re.compile(r"(?<![\w-])r-[0-9a-z]{10}(?![\w-])")
STANDARD_STREAMS: Final = (1, 2)


class JsonLines(logging.Formatter):
    """A record as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        message = _clean(record.getMessage())
        line: dict[str, object] = {
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": message,
        }
        run_id = getattr(record, "run_id", None) or _run_in(message)
        if run_id is not None:
            line["run_id"] = run_id
        if record.exc_info is not None and record.exc_info[0] is not None:
            line["exception"] = _clean(self.formatException(record.exc_info))
        return msgspec.json.encode(line).decode()


class ForPeople(logging.Formatter):
    """A record as somebody at a terminal reads it."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s", "%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        return _clean(super().format(record))


def _clean(text: str) -> str:
    # Half a surrogate pair, from a file name for example, has no place in JSON.
    # Redacted before it is cut: half a secret is no secret by its shape.
    shown = redact(text[: TEXT_CHARS_MAX + MARGIN_BYTES])[:TEXT_CHARS_MAX]
    return shown.encode("utf-8", "backslashreplace").decode()


def _run_in(message: str) -> str | None:
    """The run a message names; of several the first."""
    found = RUN_ID.search(message)
    return None if found is None else found[0]


class BoundedFile(logging.Handler):
    """Appends to a file, mode 0600; one that has grown too large becomes ``<name>.1``.

    Args:
        path: The file.
        bytes_max: Looked at before each line, so that the file can exceed it by one line.
    """

    def __init__(self, path: Path, *, bytes_max: int) -> None:
        super().__init__()
        self._path = path
        self._bytes_max = bytes_max
        self._file = _open(path)
        self._rotate_if_large()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = f"{self.format(record)}\n"
            self._rotate_if_large()
            self._file.write(line)
            self._file.flush()
        except Exception:  # noqa: BLE001 - a full disk must not end what is being logged
            self.handleError(record)

    def close(self) -> None:
        with contextlib.suppress(OSError):  # lines that no disk took
            self._file.close()
        super().close()

    def _rotate_if_large(self) -> None:
        old = os.fstat(self._file.fileno())  # our standard error grows it, too
        if old.st_size <= self._bytes_max:
            return
        self._path.replace(self._path.with_name(f"{self._path.name}.1"))
        fresh = _open(self._path)
        # Whoever started us sent our standard output and error to the file just moved away.
        for descriptor in STANDARD_STREAMS:
            own = os.fstat(descriptor)
            if (own.st_dev, own.st_ino) == (old.st_dev, old.st_ino):
                os.dup2(fresh.fileno(), descriptor)
        self._file.close()
        self._file = fresh


def redact_tracebacks() -> None:
    """What ends this process, or a thread of it, is printed without secrets from now on.

    Our standard error is the log, and an uncaught exception passes by every formatter.
    """

    def of_process(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        _print_redacted(traceback.format_exception(kind, error, trace))

    def of_thread(ended: threading.ExceptHookArgs) -> None:
        if ended.exc_type is not SystemExit:
            _print_redacted(
                traceback.format_exception(ended.exc_type, ended.exc_value, ended.exc_traceback)
            )

    sys.excepthook, threading.excepthook = of_process, of_thread


def _print_redacted(lines: list[str]) -> None:
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(redact("".join(lines)).encode("utf-8", "backslashreplace").decode())


def _open(path: Path) -> IO[str]:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o600), "a", encoding="utf-8", errors="backslashreplace")


@contextlib.contextmanager
def writing_log(path: Path, *, bytes_max: int) -> Iterator[None]:
    """Write what we log to ``path``, and to standard error when that is a terminal."""
    file = BoundedFile(path, bytes_max=bytes_max)
    file.setFormatter(JsonLines())
    handlers: list[logging.Handler] = [file]
    if sys.stderr is not None and sys.stderr.isatty():
        terminal = logging.StreamHandler(sys.stderr)
        terminal.setFormatter(ForPeople())
        handlers.append(terminal)
    silence = logging.NullHandler()
    logging.getLogger(SILENT).addHandler(silence)
    before = [(logging.getLogger(name), logging.getLogger(name).level) for name in LOGGERS]
    for name, level in LOGGERS.items():
        logger = logging.getLogger(name)
        logger.setLevel(level)
        for handler in handlers:
            logger.addHandler(handler)
    try:
        yield
    finally:
        for logger, level in before:
            logger.setLevel(level)
            for handler in handlers:
                logger.removeHandler(handler)
        logging.getLogger(SILENT).removeHandler(silence)
        for handler in handlers:
            handler.close()
