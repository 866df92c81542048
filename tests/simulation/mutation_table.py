"""The table of mutations that the simulator must catch, and what they are written with."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from subagents.ports import Batch
from subagents.store.sqlite import sqlite_store
from subagents.store.sqlite.sqlite_store import SqliteStore
from subagents.store.sqlite.statements import statements

Mutation = Callable[[pytest.MonkeyPatch], None]
MUTATIONS: dict[str, Mutation] = {}
"""Of a daemon alone, by name; ``engine_mutations``, ``store_mutations`` and others fill it."""
CLUSTER_MUTATIONS: dict[str, Mutation] = {}
"""Of the nodes of a cluster; ``cluster_mutations`` fills it."""


def mutation(broken: Mutation) -> Mutation:
    """Put it into the table."""
    MUTATIONS[broken.__name__] = broken
    return broken


def cluster_mutation(broken: Mutation) -> Mutation:
    """Put it into the other one."""
    CLUSTER_MUTATIONS[broken.__name__] = broken
    return broken


def wrap(
    patch: pytest.MonkeyPatch, owner: object, name: str, make: Callable[[Any], Callable[..., Any]]
) -> None:
    """Replace what is there by what ``make`` makes of it."""
    patch.setattr(owner, name, make(getattr(owner, name)))


def nothing(*_: object, **__: object) -> Iterator[object]:
    """For what yields."""
    return iter(())


def ignored(*_: object, **__: object) -> None:
    """For what only does."""


async def ignored_async(*_: object, **__: object) -> None:
    """For what only does, and is awaited."""


def stores(patch: pytest.MonkeyPatch, **fields: Callable[[Batch], object]) -> None:
    """Of each batch the store writes these instead; memory and listeners have the whole."""

    def make(original: Any) -> Any:
        def write(self: SqliteStore, connection: object, batch: Batch) -> None:
            changed: Any = {name: change(batch) for name, change in fields.items()}
            original(self, connection, replace(batch, **changed))

        return write

    wrap(patch, SqliteStore, "_write", make)


def says_in_sql(patch: pytest.MonkeyPatch, name: str, text: str, instead: str) -> None:
    """A statement of the store with another text in one place."""
    known = statements()
    assert text in known[name]
    changed = {**known, name: known[name].replace(text, instead)}
    patch.setattr(sqlite_store, "statements", lambda: changed)
