"""What the pages of a database file still hold, read without SQLite.

SQLite reaches a table's rows from its root, so one damaged page hides all that is below it. Here
every leaf is read for itself (https://www.sqlite.org/fileformat2.html), with what was committed to
the write-ahead log in place of what the file has. A row that is not whole is left out.
"""

import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

Stored: TypeAlias = int | float | str | bytes | None

MAGIC: Final = b"SQLite format 3\0"
PAGE_BYTES: Final = 4096
"""SQLite's own choice, where the file does not tell."""
TABLE_LEAF, INDEX_LEAF, INDEX_INNER = 13, 10, 2
_WIDTHS: Final = (0, 1, 2, 3, 4, 6, 8)
_BROKEN: Final = (IndexError, ValueError, struct.error)


class Row(NamedTuple):
    """One record; of a table without rowids, and of an index, ``number`` is None."""

    number: int | None
    values: tuple[Stored, ...]


class Pages:
    """The pages of a database file as of its newest commit.

    Args:
        path: The file, at most so large that it fits into memory; nothing is written.
    """

    def __init__(self, path: Path) -> None:
        self._data = path.read_bytes() if path.is_file() else b""
        log = path.with_name(f"{path.name}-wal")
        # Without its file a log is of nobody knows what.
        found = log.read_bytes() if self._data and log.is_file() else b""
        self._size = _page_bytes(self._data)
        self._newer, count = _committed(found, self._size)
        self.count = count or -(-len(self._data) // self._size)
        first = self.page(1)
        is_sound = first[:16] == MAGIC
        self._usable = self._size - (first[20] if is_sound else 0)
        self.version = _number(first, 60) if is_sound else None
        """The schema that the file says it has; None = it says nothing."""
        self._free = self._freelist(_number(first, 32)) if is_sound else set()

    def page(self, number: int) -> bytes:
        """From 1; zeros where there is none."""
        newer = self._newer.get(number)
        if newer is not None:
            return newer
        page = self._data[(number - 1) * self._size : number * self._size] if number > 0 else b""
        return page.ljust(self._size, b"\0")

    def rows(self) -> Iterator[Row]:
        """Every whole record of every leaf, in the order of the file."""
        for number in range(1, self.count + 1):
            if number not in self._free:
                yield from self._rows_of(self.page(number), 100 if number == 1 else 0)

    def _rows_of(self, page: bytes, at: int) -> Iterator[Row]:
        kind = page[at]
        if kind not in {TABLE_LEAF, INDEX_LEAF, INDEX_INNER}:
            return
        cells = int.from_bytes(page[at + 3 : at + 5], "big")
        start = at + (12 if kind == INDEX_INNER else 8)
        for place in range(start, min(start + 2 * cells, self._usable), 2):
            try:
                yield self._row(page, int.from_bytes(page[place : place + 2], "big"), kind)
            except _BROKEN:
                continue

    def _row(self, page: bytes, at: int, kind: int) -> Row:
        if kind == INDEX_INNER:
            at += 4  # its child
        size, at = _varint(page, at)
        number = None
        if kind == TABLE_LEAF:
            number, at = _varint(page, at)
        most = self._usable - 35 if kind == TABLE_LEAF else (self._usable - 12) * 64 // 255 - 23
        here = size
        if size > most:
            least = (self._usable - 12) * 32 // 255 - 23
            here = least + (size - least) % (self._usable - 4)
            here = here if here <= most else least
        payload = page[at : at + here]
        if size > here:
            payload += self._overflow(_number(page, at + here), size - here)
        if len(payload) != size:
            raise ValueError(size)
        return Row(number, _values(payload))

    def _overflow(self, number: int, size: int) -> bytes:
        parts, seen = [], set[int]()
        while size > 0:
            # Of a damaged one neither the length nor the way need come to an end.
            if not 0 < number <= self.count or number in seen:
                raise ValueError(number)
            seen.add(number)
            page = self.page(number)
            part = page[4 : 4 + min(size, self._usable - 4)]
            parts.append(part)
            size -= len(part)
            number = _number(page, 0)
        return b"".join(parts)

    def _freelist(self, trunk: int) -> set[int]:
        free: set[int] = set()
        while 0 < trunk <= self.count and trunk not in free:
            free.add(trunk)
            page = self.page(trunk)
            leaves = min(_number(page, 4), self._size // 4 - 2)
            free.update(_number(page, 8 + 4 * index) for index in range(leaves))
            trunk = _number(page, 0)
        return free


def _page_bytes(data: bytes) -> int:
    size = int.from_bytes(data[16:18], "big") if data[:16] == MAGIC else 0
    size = 65_536 if size == 1 else size
    return size if 512 <= size <= 65_536 and size & (size - 1) == 0 else PAGE_BYTES


def _committed(log: bytes, size: int) -> tuple[Mapping[int, bytes], int]:
    """The pages of all whole commits in a write-ahead log, and how many the database then had."""
    pages: dict[int, bytes] = {}
    if len(log) < 32 or _number(log, 0) not in {0x377F0682, 0x377F0683}:
        return pages, 0
    order = ">" if log[3] & 1 else "<"
    sums = _checksum(log[:24], (0, 0), order)
    waiting, count = {}, 0
    for at in range(32, len(log) - size - 23, size + 24):
        head, page = log[at : at + 24], log[at + 24 : at + 24 + size]
        sums = _checksum(page, _checksum(head[:8], sums, order), order)
        if head[8:16] != log[16:24] or struct.unpack(">2I", head[16:]) != sums:
            break
        waiting[_number(head, 0)] = page
        if _number(head, 4):
            pages.update(waiting)
            waiting, count = {}, _number(head, 4)
    return pages, count


def _checksum(data: bytes, before: tuple[int, int], order: str) -> tuple[int, int]:
    one, two = before
    for left, right in struct.iter_unpack(f"{order}2I", data):
        one = (one + left + two) & 0xFFFFFFFF
        two = (two + right + one) & 0xFFFFFFFF
    return one, two


def _values(payload: bytes) -> tuple[Stored, ...]:
    end, at = _varint(payload, 0)
    place, found = end, []
    while at < end:
        kind, at = _varint(payload, at)
        value, place = _value(payload, place, kind)
        found.append(value)
    if at != end or place != len(payload):
        raise ValueError(payload)
    return tuple(found)


def _value(payload: bytes, at: int, kind: int) -> tuple[Stored, int]:
    if kind >= 12:
        end = at + (kind - 12) // 2
        data = payload[at:end]
        return (data.decode() if kind % 2 else data), end
    match kind:
        case 0:
            return None, at
        case 7:
            return struct.unpack_from(">d", payload, at)[0], at + 8
        case 8 | 9:
            return kind - 8, at
        case 10 | 11:
            raise ValueError(kind)
    end = at + _WIDTHS[kind]
    return int.from_bytes(payload[at:end], "big", signed=True), end


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for index in range(8):
        byte = data[at + index]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + index + 1
    value = value << 8 | data[at + 8]
    return value - (1 << 64 if value >> 63 else 0), at + 9


def _number(data: bytes, at: int) -> int:
    return int(struct.unpack_from(">I", data, at)[0])
