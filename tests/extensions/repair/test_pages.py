"""Rows are read from the pages of a file as SQLite wrote them, whatever became of other pages."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from subagents.extensions.repair.pages import PAGE_BYTES, TABLE_LEAF, Pages, Stored

VALUES = st.one_of(
    st.none(),
    st.integers(min_value=-(2**63), max_value=2**63 - 1),
    st.floats(allow_nan=False),
    st.text(st.characters(codec="utf-8", exclude_characters="\0")),
    st.binary(max_size=20_000),
    st.integers(0, 30_000).map(lambda size: "x" * size),
)


def written(path: Path, found: list[tuple[Stored, ...]], *, page: int = PAGE_BYTES) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA page_size = {page}")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("CREATE TABLE kept (a, b, c)")
        connection.executemany("INSERT INTO kept VALUES (?, ?, ?)", found)


def kept(path: Path) -> list[tuple[int | None, tuple[Stored, ...]]]:
    return sorted(
        ((row.number, row.values) for row in Pages(path).rows() if len(row.values) == 3),
        key=lambda each: each[0] or 0,
    )


@pytest.mark.requirement("store:salvage:pages")
@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(VALUES, VALUES, VALUES), max_size=8), st.sampled_from((512, 4096, 65_536))
)
def test_every_row_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, found: list[tuple[Stored, ...]], page: int
) -> None:
    path = tmp_path_factory.mktemp("pages") / "a.db"
    written(path, found, page=page)

    assert kept(path) == list(enumerate(found, start=1))


@pytest.mark.requirement("store:salvage:pages")
def test_what_is_committed_to_the_log_counts_and_what_is_not_does_not(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    written(path, [(1, 2, 3)])
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("UPDATE kept SET a = 'new'")
        connection.executemany(
            "INSERT INTO kept VALUES (?, ?, ?)", [(n, n, "x" * 900) for n in range(50)]
        )
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN")
        connection.executemany(
            "INSERT INTO kept VALUES (?, ?, ?)", [(0, 0, "y" * 900) for _ in range(50)]
        )
        in_file = path.read_bytes().count(b"x" * 900)
        found = kept(path)
        log = path.with_name("a.db-wal")
        torn = log.read_bytes()[:-1000]
        (tmp_path / "b.db").write_bytes(path.read_bytes())
        (tmp_path / "b.db-wal").write_bytes(torn[:3000])

    assert in_file == 0
    assert [values[0] for _, values in found] == ["new", *range(50)]
    assert kept(tmp_path / "b.db") == [(1, (1, 2, 3))]


@pytest.mark.requirement("store:salvage:pages")
def test_deleted_rows_do_not_come_back(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA secure_delete = OFF")
        connection.execute("CREATE TABLE kept (a, b, c)")
        connection.executemany(
            "INSERT INTO kept VALUES (?, ?, ?)", [(n, 0, "x" * 500) for n in range(200)]
        )
        connection.execute("DELETE FROM kept WHERE a >= 10")

    assert [values[0] for _, values in kept(path)] == list(range(10))


@pytest.mark.requirement("store:salvage:pages")
def test_a_record_without_end_whose_pages_lead_in_a_circle_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    written(path, [("x" * 10_000, 0, 0), (2, 0, 0)])
    content = bytearray(path.read_bytes())
    leaf, circle = PAGE_BYTES, 2 * PAGE_BYTES
    assert content[leaf] == TABLE_LEAF
    cell = leaf + int.from_bytes(content[leaf + 8 : leaf + 10], "big")
    # A length of eight bytes, and its number; what follows of it begins on the page `circle`.
    content[cell : cell + 8] = b"\xff" * 7 + b"\x7f"
    content[cell + 8] = 1
    content[circle : circle + 4] = (3).to_bytes(4, "big")
    here = 489 + ((1 << 56) - 1 - 489) % 4_092
    overflow = cell + 9 + (here if here <= 4_061 else 489)
    content[overflow : overflow + 4] = (3).to_bytes(4, "big")
    path.write_bytes(content)

    assert kept(path) == [(2, (2, 0, 0))]


@pytest.mark.requirement("store:salvage:pages")
@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_no_damage_raises_and_rows_of_other_pages_stay(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("damaged") / "a.db"
    written(path, [(n, "x" * 300, None) for n in range(100)])
    content = bytearray(path.read_bytes())
    page = data.draw(st.integers(1, len(content) // PAGE_BYTES))
    all_of_it = st.just(b"\xff" * PAGE_BYTES)
    some = st.binary(min_size=1, max_size=600)
    junk = data.draw(all_of_it if page == 1 else st.one_of(all_of_it, some))
    at = (page - 1) * PAGE_BYTES + data.draw(st.integers(0, PAGE_BYTES - len(junk)))
    content[at : at + len(junk)] = junk
    end = data.draw(st.sampled_from((len(content), page * PAGE_BYTES)))
    path.write_bytes(content[:end])
    with_end = end // PAGE_BYTES

    found = {values[0] for _, values in kept(path)}
    whole = written_pages(path.with_name("b.db"))

    assert found >= {n for n, on in whole.items() if on != page and on <= with_end}


def written_pages(path: Path) -> dict[int, int]:
    """On which page each of those rows lies."""
    written(path, [(n, "x" * 300, None) for n in range(100)])
    pages = Pages(path)
    return {
        int(str(row.values[0])): number
        for number in range(1, pages.count + 1)
        for row in pages._rows_of(pages.page(number), 100 if number == 1 else 0)
        if len(row.values) == 3
    }
