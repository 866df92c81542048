"""Which versions of other people's programs were tried with subagents, when, and what held.

One table (``versions_seen.json``), written by ``make runtime-table`` from real runs. ``doctor``
compares what is installed with it, docs/runtime-table.md shows it, and tests/real begins from it.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

FILE: Final = Path(__file__).with_name("versions_seen.json")
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)+")


class Trial(msgspec.Struct, frozen=True):
    """One version, tried for real."""

    version: str
    """Empty = it is our own."""
    tried_on: str
    """A day, ``2026-11-22``."""
    held: dict[str, str]
    """What was tried (``steer``) → what was seen (``same turn``); ``FAILED …`` = it did not
    hold."""


class ProgramVersions(msgspec.Struct, frozen=True, omit_defaults=True):
    """One program."""

    package: str = ""
    """The name of its package on npm."""
    update: str = ""
    """What a person types to get the newest version."""
    oldest: str | None = None
    """An older one cannot work; None = it is not known which."""
    why_oldest: str = ""
    seen: tuple[Trial, ...] = ()
    """The newest trial last."""


class Standing(StrEnum):
    """How a version compares with those that were tried."""

    TRIED = "tried"
    UNSEEN = "unseen"
    TOO_OLD = "too_old"


@cache
def versions_seen() -> Mapping[str, ProgramVersions]:
    """The table, by the program's name."""
    return msgspec.json.decode(FILE.read_bytes(), type=dict[str, ProgramVersions])


def number_in(text: str) -> str | None:
    """The first version number in a text; None = it has none."""
    found = _NUMBER.search(text)
    return None if found is None else found[0]


def standing_of(row: ProgramVersions, version: str) -> Standing:
    """How ``version`` (``2.1.330``) compares with those of the row."""
    if row.oldest is not None and parts(version) < parts(row.oldest):
        return Standing.TOO_OLD
    is_tried = any(each.version == version for each in row.seen)
    return Standing.TRIED if is_tried else Standing.UNSEEN


def parts(version: str) -> tuple[int, ...]:
    """``(2, 1, 330)``, for comparing."""
    return tuple(int(each) for each in version.split("."))


def newest_seen(name: str) -> str:
    """The version that was tried last; empty = none was."""
    row = versions_seen().get(name)
    return row.seen[-1].version if row is not None and row.seen else ""
