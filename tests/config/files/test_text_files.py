"""Whatever stands at the name of a file that people write for us, it is read or refused at once."""

import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from subagents.config.files.text_files import read_text
from subagents.errors import ConfigError, UsageError

SECRET: Final = "Tm90QVJlYWxLZXk5OTk5"


def _socket(file: Path) -> None:
    # Its name stays when it is closed. Addresses of sockets are short, those of tests long.
    here = Path.cwd()
    os.chdir(file.parent)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(file.name)
    finally:
        os.chdir(here)


def _sparse(file: Path) -> None:
    file.touch()
    os.truncate(file, 2**40)


REFUSED: Final[dict[str, tuple[Callable[[Path], object], str]]] = {
    "nothing": (lambda _: None, "cannot read FILE: No such file or directory"),
    "a directory": (Path.mkdir, "FILE is a directory, not a regular file"),
    "a pipe": (os.mkfifo, "FILE is a pipe, not a regular file"),
    "a device without an end": (
        lambda file: file.symlink_to("/dev/zero"),
        "FILE is a device, not a regular file",
    ),
    "a socket": (_socket, "cannot read FILE: No such device or address"),
    "a link to itself": (
        lambda file: file.symlink_to(file),
        "cannot read FILE: Too many levels of symbolic links",
    ),
    "a directory on the way that is none": (
        lambda file: file.symlink_to("/dev/null/x"),
        "cannot read FILE: Not a directory",
    ),
    "gigabytes of nothing": (
        _sparse,
        "FILE is larger than 1,000 bytes",
    ),
    "another encoding": (
        lambda file: file.write_bytes(b"a\n" + SECRET.encode() + b"\xe9"),
        "FILE:2: not valid UTF-8 (byte 0xe9)",
    ),
    "PowerShell's encoding": (
        lambda file: file.write_bytes(b"\xff\xfe" + SECRET.encode("utf-16-le")),
        "FILE:1: UTF-16, not UTF-8",
    ),
    "the other UTF-16": (
        lambda file: file.write_bytes(b"\xfe\xff" + SECRET.encode("utf-16-be")),
        "FILE:1: UTF-16, not UTF-8",
    ),
    "UTF-32": (
        lambda file: file.write_bytes(SECRET.encode("utf-32")),
        "FILE:1: UTF-32, not UTF-8",
    ),
}


@pytest.mark.requirement("files:bounded")
@pytest.mark.parametrize(("make", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_no_bounded_file_of_text_is_refused_in_words(
    tmp_path: Path, make: Callable[[Path], object], message: str
) -> None:
    file = tmp_path / "f"
    make(file)

    with pytest.raises(ConfigError) as refused:
        read_text(file, bytes_max=1_000, refusal=ConfigError)

    assert refused.value.message == message.replace("FILE", str(file))


@pytest.mark.requirement("files:bounded")
def test_a_name_that_no_file_can_have_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot read a: "):
        read_text(Path("a\0b"), bytes_max=10, name="a")


@pytest.mark.requirement("files:byte-order-mark")
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_byte_order_mark_is_no_part_of_the_text_and_line_ends_are(
    tmp_path: Path, line_end: str
) -> None:
    (tmp_path / "f").write_bytes(f"\ufeffa{line_end}b".encode())

    assert read_text(tmp_path / "f", bytes_max=100) == f"a{line_end}b"


@pytest.mark.requirement("files:bounded")
def test_a_stream_is_read_to_its_end_where_the_caller_takes_one(tmp_path: Path) -> None:
    reading, writing = os.pipe()

    def write() -> None:
        os.write(writing, b"one")
        os.close(writing)

    writer = threading.Thread(target=write)
    writer.start()

    assert read_text(Path(f"/dev/fd/{reading}"), bytes_max=10, streams=True) == "one"

    writer.join()
    os.close(reading)


@pytest.mark.requirement("files:bounded")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (os.mkfifo, "is a pipe that nobody writes to, not a regular file"),
        (lambda file: file.symlink_to("/dev/zero"), "is larger than 10 bytes"),
    ],
    ids=["a pipe without a writer", "a device without an end"],
)
def test_a_stream_without_a_writer_or_without_an_end_is_not_waited_for(
    tmp_path: Path, make: Callable[[Path], object], message: str
) -> None:
    make(tmp_path / "f")

    with pytest.raises(UsageError, match=message):
        read_text(tmp_path / "f", bytes_max=10, streams=True)
