"""Changes an input as a hostile or broken program would: bytes, lines, and values of JSON."""

import json
import random
from collections.abc import Sequence
from typing import Any, Final

from tests.fuzz.target import INPUT_BYTES_MAX

ODD_BYTES: Final = (
    *(b"\0", b"\n", b"\r", b"\r\n", b"\x1b[31m", b"\x1b]0;", b"\x9b", b"\xff\xfe", b"\xc3", b"\\"),
    *(b'"', b"'", b"{", b"}", b"[", b"]", b",", b":", b"-", b"%00", b"..", b"/", b"$(", b"\\u0000"),
    *(b"\\ud800", b"1e999", b"9" * 30, "\N{RIGHT-TO-LEFT OVERRIDE}".encode(), b"\xe2\x80\x8b"),
    *("\N{DIGIT THREE}\N{ARABIC-INDIC DIGIT THREE}".encode(), "\N{SUPERSCRIPT TWO}".encode()),
    *(b"NaN", b"Infinity", b"null", b"true", b"\xf4\x90\x80\x80", b"```", b"&a;", b"<", b">"),
)
ODD_VALUES: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**53, 2**63, -(2**63), 2**64, 10**30, 0.5, -0.0, 1e308),
    *("", " ", "\0", "\n", "\x1b[2J", "x" * 5_000, "é" * 300, "\U0001f600", "-", "/", "../..", "0"),
    *(
        [],
        {},
        [[]],
        [None],
        {"": None},
        [{}],
        ["x"] * 50,
        {"type": "text"},
        {"id": {}},
        "9" * 5_000,
    ),
)
DEEP: Final = 3_000


def mutated(
    data: bytes, others: Sequence[bytes], words: Sequence[bytes], dice: random.Random
) -> bytes:
    """A few changes of ``data``, of at most ``INPUT_BYTES_MAX`` bytes."""
    for _ in range(dice.choice((1, 1, 1, 2, 4))):
        data = _changed(data, others, words, dice)
    return data[:INPUT_BYTES_MAX]


def _changed(
    data: bytes, others: Sequence[bytes], words: Sequence[bytes], dice: random.Random
) -> bytes:
    kind = dice.randrange(100)
    if kind < 45:
        changed = _with_other_value(data, dice)
        if changed is not None:
            return changed
    if kind < 60:
        return _with_other_lines(data, others, dice)
    start, end = _span(data, dice)
    if kind < 65:
        return data[:start] + data[end:]
    if kind < 70:
        return data[:end] + data[start:end] + data[end:]
    if kind < 71:
        return _blown_up(data, start, end)
    if kind < 88 and words:
        return data[:start] + dice.choice(words) + data[dice.choice((start, end)) :]
    if kind < 94:
        return data[:start] + dice.choice(ODD_BYTES) + data[dice.choice((start, end)) :]
    return data[:start] + dice.randbytes(dice.randint(1, 8)) + data[start + 1 :]


def _span(data: bytes, dice: random.Random) -> tuple[int, int]:
    start = dice.randint(0, len(data))
    return start, min(len(data), start + dice.choice((1, 2, 4, 16, 64, 1024)))


def _blown_up(data: bytes, start: int, end: int) -> bytes:
    """One piece of it again and again: what takes more than linear time shows."""
    piece = data[start:end] or b"a"
    times = max((INPUT_BYTES_MAX - len(data)) // len(piece), 0)
    return data[:end] + piece * times + data[end:]


def _with_other_lines(data: bytes, others: Sequence[bytes], dice: random.Random) -> bytes:
    lines = data.split(b"\n")
    at = dice.randrange(len(lines))
    match dice.randrange(4):
        case 0:
            del lines[at]
        case 1:
            lines.insert(dice.randint(0, len(lines)), lines[at])
        case 2:
            other = dice.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        case _ if others:
            lines.insert(at, dice.choice(dice.choice(others).split(b"\n")))
    return b"\n".join(lines)


def _with_other_value(data: bytes, dice: random.Random) -> bytes | None:
    lines = data.split(b"\n")
    at = dice.randrange(len(lines))
    try:
        document = json.loads(lines[at])
    except (ValueError, RecursionError):
        return None
    spots = list(_spots(document))
    if not spots:
        return None
    holder, key = dice.choice(spots)
    match dice.randrange(6):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, dict):
            holder[dice.choice(list(holder))] = holder[key]
        case 2:
            other, name = dice.choice(spots)
            holder[key] = json.loads(json.dumps(other[name]))
        case _:
            holder[key] = dice.choice(ODD_VALUES)
    text = json.dumps(document)
    if dice.randrange(200) == 0:
        text = text.replace('""', "[" * DEEP + "]" * DEEP, 1)
    lines[at] = text.encode()
    return b"\n".join(lines)


def _spots(value: Any) -> Any:
    """Every place in it: its holder and its key."""
    pairs = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, each in list(pairs):
        yield value, key
        yield from _spots(each)
