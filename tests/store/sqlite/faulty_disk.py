"""A disk below SQLite that fails when it is told to, and remembers what was not yet safe on it.

It is a VFS, registered in the very library that Python's ``sqlite3`` uses: files are opened by the
ordinary one, and of their methods those that write, sync, truncate and lock go through here.
"""

import ctypes
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_int, c_int64, c_void_p
from pathlib import Path
from typing import Any, Final, NamedTuple

OK: Final = 0
FULL: Final = 13
IO_WRITE: Final = 10 | 3 << 8
IO_FSYNC: Final = 10 | 4 << 8
IO_TRUNCATE: Final = 10 | 6 << 8
IO_LOCK: Final = 10 | 15 << 8
SECTOR: Final = 512

_WRITE = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_int64)
_TRUNCATE = CFUNCTYPE(c_int, c_void_p, c_int64)
_FLAGGED = CFUNCTYPE(c_int, c_void_p, c_int)
_OPEN = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_int, c_void_p)
_CLOSE = CFUNCTYPE(c_int, c_void_p)


class _Methods(ctypes.Structure):
    """``sqlite3_io_methods``, version 3."""

    _fields_ = [
        ("version", c_int),
        ("close", _CLOSE),
        ("read", c_void_p),
        ("write", _WRITE),
        ("truncate", _TRUNCATE),
        ("sync", _FLAGGED),
        ("size", c_void_p),
        ("lock", _FLAGGED),
        *((f"rest{number}", c_void_p) for number in range(11)),
    ]


class _File(ctypes.Structure):
    _fields_ = [("methods", POINTER(_Methods))]


class _Vfs(ctypes.Structure):
    """``sqlite3_vfs``, version 3."""

    _fields_ = [
        ("version", c_int),
        ("file_bytes", c_int),
        ("path_max", c_int),
        ("next", c_void_p),
        ("name", c_char_p),
        ("data", c_void_p),
        ("open", _OPEN),
        *((f"rest{number}", c_void_p) for number in range(15)),
    ]


class Operation(NamedTuple):
    """What SQLite asked the disk to do."""

    kind: str
    """``write``, ``truncate``, ``sync`` or ``lock``."""
    path: str
    offset: int
    data: bytes


class FaultyDisk:
    """What SQLite did to its files since ``recording``, and when that fails."""

    def __init__(self) -> None:
        self.done: list[Operation] = []
        self.fails: Callable[[Operation], int] = lambda _: OK
        """The code with which an operation ends, asked before it; a short write is done by half."""
        self._paths: dict[int, str] = {}
        self._patched: dict[int, _Methods] = {}
        self._keep: list[Any] = []

    def patch(self, file: int, path: str) -> None:
        """Let what is done to this file, which the ordinary VFS has opened, go through here."""
        opened = ctypes.cast(file, POINTER(_File)).contents
        if not opened.methods:
            return
        address = ctypes.addressof(opened.methods.contents)
        if address not in self._patched:
            self._patched[address] = self._through(opened.methods.contents)
        self._paths[file] = path
        opened.methods = ctypes.pointer(self._patched[address])

    def _through(self, real: _Methods) -> _Methods:
        copy = _Methods.from_buffer_copy(real)

        def write(file: int, data: int, count: int, offset: int) -> int:
            content = ctypes.string_at(data, count)
            code = self._begin(Operation("write", self._paths.get(file, ""), offset, content))
            if code != OK:
                half = count // 2
                real.write(file, data, half, offset)
                self._done(Operation("write", self._paths.get(file, ""), offset, content[:half]))
                return code
            found: int = real.write(file, data, count, offset)
            self._done(Operation("write", self._paths.get(file, ""), offset, content))
            return found

        def truncate(file: int, size: int) -> int:
            operation = Operation("truncate", self._paths.get(file, ""), size, b"")
            return self._run(operation, lambda: real.truncate(file, size))

        def sync(file: int, flags: int) -> int:
            operation = Operation("sync", self._paths.get(file, ""), 0, b"")
            return self._run(operation, lambda: real.sync(file, flags))

        def lock(file: int, level: int) -> int:
            operation = Operation("lock", self._paths.get(file, ""), level, b"")
            return self._run(operation, lambda: real.lock(file, level))

        copy.write, copy.truncate = _WRITE(write), _TRUNCATE(truncate)
        copy.sync, copy.lock = _FLAGGED(sync), _FLAGGED(lock)
        self._keep += [copy.write, copy.truncate, copy.sync, copy.lock]
        return copy

    def _begin(self, operation: Operation) -> int:
        return self.fails(operation)

    def _done(self, operation: Operation) -> None:
        self.done.append(operation)

    def _run(self, operation: Operation, work: Callable[[], int]) -> int:
        code = self._begin(operation)
        if code == OK:
            code = work()
            self._done(operation)
        return code


@contextmanager
def faulty_disk() -> Iterator[FaultyDisk]:
    """Every database that is opened meanwhile is on it.

    Raises:
        OSError: Python's ``sqlite3`` does not use a shared library that can be found.
    """
    library = _library()
    library.sqlite3_vfs_find.restype = POINTER(_Vfs)
    ordinary = library.sqlite3_vfs_find(None)
    disk = FaultyDisk()
    shim = _Vfs.from_buffer_copy(ordinary.contents)

    def opened(_vfs: int, name: int | None, file: int, flags: int, out: int) -> int:
        # The name goes on as the address that it came as: the ordinary VFS keeps that.
        code: int = ordinary.contents.open(
            ctypes.addressof(ordinary.contents), name, file, flags, out
        )
        if code == OK:
            disk.patch(file, "" if name is None else ctypes.string_at(name).decode())
        return code

    shim.open, shim.name, shim.next = _OPEN(opened), b"faulty", None
    library.sqlite3_vfs_register(ctypes.byref(shim), 1)
    try:
        yield disk
    finally:
        library.sqlite3_vfs_unregister(ctypes.byref(shim))
        library.sqlite3_vfs_register(ordinary, 1)


def _library() -> ctypes.CDLL:
    import _sqlite3  # noqa: PLC0415 - loads it

    assert _sqlite3
    for line in Path("/proc/self/maps").read_text().splitlines():
        if "libsqlite3" in line:
            return ctypes.CDLL(line.split()[-1])
    raise OSError("no shared libsqlite3 is loaded: Python has its own inside")


def after_power_loss(
    before: dict[str, bytes], done: list[Operation], drawn: random.Random | None
) -> dict[str, bytes]:
    """What is on the disk: all that was synced, and of the rest nothing, or what chance wills.

    Args:
        before: The files when ``done`` began.
        done: In order.
        drawn: Which sectors of what was not synced are there; None = none.
    """
    last_sync = {each.path: number for number, each in enumerate(done) if each.kind == "sync"}
    files = {path: bytearray(content) for path, content in before.items()}
    for number, each in enumerate(done):
        content = files.setdefault(each.path, bytearray())
        is_safe = number < last_sync.get(each.path, -1)
        if each.kind == "truncate" and (is_safe or (drawn is not None and drawn.random() < 0.5)):
            del content[each.offset :]
        if each.kind != "write":
            continue
        for start in range(0, len(each.data), SECTOR):
            if is_safe or (drawn is not None and drawn.random() < 0.5):
                part = each.data[start : start + SECTOR]
                place = each.offset + start
                content.extend(bytes(max(place + len(part) - len(content), 0)))
                content[place : place + len(part)] = part
    return {path: bytes(content) for path, content in files.items() if content}
