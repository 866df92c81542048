"""Reads the files that people write for us: bounded, whatever stands at their name.

Configuration, plans, variables, agents of other programs, schemas: all of them are read here, so
that a pipe without a writer, a device without an end or a file of gigabytes is refused at once and
in words, and a byte order mark means the same everywhere. No message holds a part of the content.
"""

import codecs
import os
import stat
from pathlib import Path
from typing import Final

from subagents.errors import NotFound, UsageError

_WIDE: Final = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
"""Marks at the beginning, the longer ones first: UTF-32's begins with that of UTF-16."""
_KINDS: Final = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
READ_BYTES: Final = 1024 * 1024
"""How much is read at once."""


def read_text(
    file: Path,
    *,
    bytes_max: int,
    name: str | None = None,
    refusal: type[UsageError] = UsageError,
    field: str | None = None,
    streams: bool = False,
) -> str:
    """The text of a file, without its byte order mark; line ends are as they are.

    Args:
        file: Links are followed.
        bytes_max: Larger files are refused, and of what has no end no more is read.
        name: For messages: ``--env-file a.env``; None = the file's.
        refusal: What is raised.
        field: The flag or parameter that named it, for ``details``.
        streams: Take a pipe or a terminal, too, to its end: ``<(op inject …)`` of a shell. Waits
            for its writer; for a file that the caller's own user named on the command line.

    Raises:
        NotFound: There is none, and ``field`` named it.
        UsageError: Or ``refusal``: it cannot be read, is no file, too large, or not UTF-8. The
            message says which, and holds nothing of the content.
    """
    shown = str(file) if name is None else name
    details = {} if field is None else {"field": field}
    try:
        content = _content(file, bytes_max, streams=streams)
    except OSError as error:
        if isinstance(error, FileNotFoundError) and field is not None:
            raise NotFound(f"{shown}: there is no such file", details=details) from error
        is_denied = isinstance(error, PermissionError)
        raise refusal(
            f"cannot read {shown}: {error.strerror}",
            hint="make it readable for you, or move it away" if is_denied else None,
            details=details,
        ) from error
    except ValueError as error:  # a NUL in its name
        raise refusal(f"cannot read {shown}: {error}", details=details) from error
    if isinstance(content, str):
        raise refusal(
            f"{shown} is {content}, not a regular file",
            hint="put a file there, or move it away",
            details=details,
        )
    return decoded(content, bytes_max=bytes_max, name=shown, refusal=refusal, field=field)


def decoded(
    content: bytes,
    *,
    bytes_max: int,
    name: str,
    refusal: type[UsageError] = UsageError,
    field: str | None = None,
) -> str:
    """The same for what was read already, from standard input for example.

    Raises:
        UsageError: Or ``refusal``: it is too large, or not UTF-8.
    """
    details = {} if field is None else {"field": field}
    if len(content) > bytes_max:
        raise refusal(f"{name} is larger than {bytes_max:,} bytes", details=details)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        wide = next((each for mark, each in _WIDE.items() if content.startswith(mark)), None)
        byte = f"byte 0x{content[error.start]:02x}"
        why = f"not valid UTF-8 ({byte})" if wide is None else f"{wide}, not UTF-8"
        raise refusal(
            f"{name}:{line}: {why}", hint="save the file as UTF-8", details=details
        ) from error


def _content(file: Path, bytes_max: int, *, streams: bool) -> bytes | str:
    """At most one byte more than allowed; a text says what it is instead of a file."""
    # Looked at through the descriptor: the name may stand for something else a moment later. And
    # without waiting, since the open of a pipe waits for whoever writes to it.
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
        is_stream = streams and kind in {stat.S_IFIFO, stat.S_IFCHR}
        if kind != stat.S_IFREG and not is_stream:
            return _KINDS.get(kind, "something else")
        if is_stream:
            os.set_blocking(descriptor, True)
        found = bytearray()
        while len(found) <= bytes_max:
            more = os.read(descriptor, min(READ_BYTES, bytes_max + 1 - len(found)))
            if not more:
                break
            found += more
        if not found and kind == stat.S_IFIFO:
            return "a pipe that nobody writes to"
        return bytes(found)
    finally:
        os.close(descriptor)
