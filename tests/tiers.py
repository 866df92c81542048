"""Which tests run when: a table by place, and pytest's option ``--tier``.

``tests/tiers.toml`` names the tier from which on a folder, a file, a test, or whatever uses a
fixture runs; what it does not name is quick, and runs every time. A test or file that the command
line names runs whatever its tier is, so that nobody has to know of tiers to try one.
"""

import operator
import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from itertools import compress
from pathlib import Path
from typing import Final, Self

import pytest

TABLE: Final = Path(__file__).with_name("tiers.toml")


class Tier(IntEnum):
    """Each runs what those before it run, and more."""

    test = 0
    check = 1
    ci = 2
    all = 3
    soak = 4


@dataclass(frozen=True)
class Tiers:
    """The table.

    Args:
        rows: By place, as a node id names it (``tests/x``, ``tests/x/test_y.py::test_z``); a
            fixture as if it were a test of its conftest.py.
    """

    rows: Mapping[str, Tier]

    @classmethod
    def read(cls, table: Path = TABLE) -> Self:
        """The table as it stands in the file.

        Raises:
            ValueError: A tier is none, or a place is named twice.
        """
        rows: dict[str, Tier] = {}
        for name, places in tomllib.loads(table.read_text("utf-8")).items():
            if name not in Tier.__members__:
                raise ValueError(f"{table.name}: {name} is no tier")
            for place in places:
                if place in rows:
                    raise ValueError(f"{table.name}: {place} is named twice")
                rows[place] = Tier[name]
        return cls(rows)

    def of(self, place: str, uses: Iterable[str] = ()) -> Tier:
        """From which on it runs: as its own row says, or else from where its file's place and
        everything it uses do.

        Args:
            place: A folder, a file, a test, or a case.
            uses: Its fixtures, as the rows name them.
        """
        while "::" in place:
            if (found := self.rows.get(place)) is not None:
                return found
            place = _container(place)
        tiers = [self.rows[each] for each in uses if each in self.rows]
        tiers += [self.rows[each] for each in (place, *_containers(place)) if each in self.rows][:1]
        return max(tiers, default=Tier.test)

    def runs_any(self, place: str, asked: Tier) -> bool:
        """Whether something in that folder or file runs."""
        return self.of(place) <= asked or self._first_inside.get(place, Tier.soak) <= asked

    @cached_property
    def _first_inside(self) -> Mapping[str, Tier]:
        """By folder and file: the first tier of the rows about what is in it."""
        found: dict[str, Tier] = {}
        for row, tier in self.rows.items():
            for place in _containers(row):
                found[place] = min(tier, found.get(place, Tier.soak))
        return found


def _containers(place: str) -> Iterator[str]:
    while place := _container(place):
        yield place


def _container(place: str) -> str:
    """What the place is in: a case is in its test, a test in its file, a file in its folder."""
    if place.endswith("]"):
        return place[: place.index("[")]
    for separator in ("::", "/"):
        if separator in place:
            return place.rpartition(separator)[0]
    return ""


class Selection:
    """Leaves out what belongs to a later tier than was asked for; a plugin of pytest.

    A test that the command line names runs in any case; of a file that it names, what CI runs.
    """

    def __init__(self, config: pytest.Config, tiers: Tiers, asked: Tier) -> None:
        self._root = config.rootpath
        self._tiers = tiers
        self._asked = asked
        self._named = [self._place_named(config, each) for each in config.args if ".py" in each]

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Nothing of a file is imported of which no test runs."""
        if not collection_path.is_relative_to(self._root):
            return None
        place = collection_path.relative_to(self._root).as_posix()
        is_on_the_way = any(each.startswith(place) for each in self._named)
        return None if is_on_the_way or self._tiers.runs_any(place, self._asked) else True

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Leave out single tests and cases, and put the dear files first.

        At the end, so, all workers have some of the quick ones to do.
        """
        runs = [self._runs(each) for each in items]
        left = [*compress(items, map(operator.not_, runs))]
        if left:
            config.hook.pytest_deselected(items=left)
            items[:] = [*compress(items, runs)]
        dearest: dict[str, Tier] = {}
        for each in items:
            file = each.nodeid.partition("::")[0]
            dearest[file] = max(self._tier(each), dearest.get(file, Tier.test))
        items.sort(key=lambda each: dearest[each.nodeid.partition("::")[0]], reverse=True)

    def _runs(self, item: pytest.Item) -> bool:
        place = item.nodeid
        if any("::" in each and f"{place}[".startswith(f"{each}[") for each in self._named):
            return True
        if any(place.startswith(f"{each}::") for each in self._named):
            return _marked(item) <= max(self._asked, Tier.ci)
        return self._tier(item) <= self._asked

    def _tier(self, item: pytest.Item) -> Tier:
        return max(self._tiers.of(item.nodeid, _fixtures(item)), _marked(item))

    def _place_named(self, config: pytest.Config, argument: str) -> str:
        file, separator, rest = argument.partition("::")
        path = (config.invocation_params.dir / file).resolve()
        return f"{os.path.relpath(path, self._root)}{separator}{rest}"


def _marked(item: pytest.Item) -> Tier:
    return max((Tier[each.args[0]] for each in item.iter_markers("tier")), default=Tier.test)


def _fixtures(item: pytest.Item) -> Iterator[str]:
    """The fixtures of conftests that it uses, as the table names them."""
    if isinstance(item, pytest.Function):
        for name, definitions in item._fixtureinfo.name2fixturedefs.items():
            yield from (f"{each.baseid}/conftest.py::{name}" for each in definitions if each.baseid)
