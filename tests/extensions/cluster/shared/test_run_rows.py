"""Variables, progress and long results of runs, as any node of a cluster reads them."""

from collections.abc import Iterator
from typing import Final

import pytest
from cryptography.fernet import Fernet, InvalidToken
from tests.extensions.cluster.postgres.postgres_server import PostgresPlace, PostgresServer
from tests.extensions.cluster.shared.conftest import NewTables

from subagents.domain.run.caller_environment import CallerEnvironment
from subagents.domain.run.run import Progress, ProgressLevel
from subagents.domain.run.values import RunId
from subagents.errors import Fenced, StoreUnavailable
from subagents.extensions.cluster.shared.allowed_call_rows import AllowedCallRows
from subagents.extensions.cluster.shared.run_rows import (
    PIECE_BYTES,
    EnvironmentRows,
    ProgressRows,
    ResultRows,
)
from subagents.store.environment_files import STRAY_S

ONE, TWO = RunId("r-0000000001"), RunId("r-0000000002")
BROUGHT: Final = CallerEnvironment(shell={"PATH": "/bin"}, given={"TOKEN": "hush"})
KEY: Final = Fernet(Fernet.generate_key())


def decrypt(sealed: bytes) -> bytes:
    try:
        return KEY.decrypt(sealed)
    except InvalidToken as error:
        raise ValueError("another key's") from error


def environments(new_tables: NewTables) -> EnvironmentRows:
    return EnvironmentRows(new_tables(), KEY.encrypt, decrypt)


@pytest.mark.requirement("environment:shared")
def test_what_one_node_was_given_for_runs_another_node_reads_and_the_database_does_not(
    new_tables: NewTables, postgres_place: PostgresPlace
) -> None:
    environments(new_tables).keep([ONE, TWO], BROUGHT)

    other = environments(new_tables)
    assert other.read(ONE) == other.read(TWO) == BROUGHT
    stored = postgres_place.asked("SELECT run_id, sealed FROM run_environment ORDER BY run_id")
    assert [run_id for run_id, _ in stored] == [ONE, TWO]
    assert not any(b"hush" in bytes(sealed) for _, sealed in stored)  # type: ignore[call-overload]

    other.forget(ONE)
    other.forget(ONE)
    with pytest.raises(FileNotFoundError):
        environments(new_tables).read(ONE)
    assert environments(new_tables).read(TWO) == BROUGHT


@pytest.mark.requirement("permissions:for-agent")
def test_what_is_allowed_at_one_node_is_allowed_at_all_and_nobody_else_can_write_it(
    new_tables: NewTables, postgres_place: PostgresPlace
) -> None:
    one, other = (AllowedCallRows(new_tables(), KEY.encrypt, decrypt) for _ in range(2))
    for call in ("Bash: make", "Bash: ls", "Bash: make"):
        one.change("claude", call, allow=True)
    assert {name: sorted(calls) for name, calls in other.read().items()} == {
        "claude": ["Bash: ls", "Bash: make"]
    }
    other.change("claude", "Bash: make", allow=False)
    assert one.read() == {"claude": ["Bash: ls"]}
    postgres_place.execute("UPDATE allowed_call SET sealed = 'made up'")
    assert one.read() == {}


@pytest.mark.requirement("environment:shared")
def test_variables_that_somebody_moved_to_another_run_or_made_up_are_refused(
    new_tables: NewTables, postgres_place: PostgresPlace
) -> None:
    environments(new_tables).keep([ONE], BROUGHT)
    postgres_place.execute("UPDATE run_environment SET run_id = ?", TWO)
    with pytest.raises(OSError, match="those of another run"):
        environments(new_tables).read(TWO)

    postgres_place.execute("UPDATE run_environment SET sealed = 'made up'")
    with pytest.raises(OSError, match="cannot be decrypted: another key's"):
        environments(new_tables).read(TWO)


@pytest.mark.requirement("environment:shared")
def test_variables_of_runs_that_were_never_stored_go_an_hour_later(
    new_tables: NewTables, postgres_place: PostgresPlace
) -> None:
    log = environments(new_tables)
    log.keep([ONE, TWO], BROUGHT)
    log.forget_strays(lambda _: False)
    assert postgres_place.asked("SELECT count(*) FROM run_environment") == [(2,)]

    postgres_place.execute(
        "UPDATE run_environment SET made_at = made_at - ? * interval '1 second'", STRAY_S + 1
    )
    log.forget_strays(lambda run_id: run_id == TWO)

    assert postgres_place.asked("SELECT run_id FROM run_environment") == [(TWO,)]


def update(number: int, phase: str = "reading\0") -> Progress:
    return Progress(
        phase=phase,
        percent_complete=12.5,
        updated_at_ms=1_700_000_000_000 + number,
        level=ProgressLevel.DETAIL,
        metrics={"files": 3, "rate": 0.5, "where": "src\n"},
        number=number,
    )


@pytest.mark.requirement("progress:shared")
def test_progress_is_read_by_any_node_in_order_and_a_number_that_comes_again_replaces_it(
    new_tables: NewTables,
) -> None:
    one = ProgressRows(new_tables())
    for each in (update(1), update(3), update(2, "lost"), update(2, "told again")):
        one.append(ONE, each)
    one.append(TWO, update(1))

    other = ProgressRows(new_tables())
    assert other.read(ONE) == (update(1), update(2, "told again"), update(3))
    other.forget(ONE)
    other.forget(ONE)
    assert (one.read(ONE), one.read(TWO)) == ((), (update(1),))


def torn() -> Iterator[bytes]:
    yield b"half"
    raise OSError("the worker's disk fails")


@pytest.mark.requirement("results:shared")
def test_a_long_result_is_read_from_any_byte_by_any_node(new_tables: NewTables) -> None:
    text = b"".join(b"%07d\n" % number for number in range(PIECE_BYTES // 4))
    pieces = [text[at : at + 10_000] for at in range(0, len(text), 10_000)]
    assert ResultRows(new_tables()).keep(ONE, "1-a", pieces, beside=()) == len(text)

    other = ResultRows(new_tables())
    for offset in (0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, len(text) - 3, len(text)):
        for size in (0, 1, 10, PIECE_BYTES, len(text)):
            assert other.read(ONE, "1-a", offset, size) == text[offset : offset + size]
    with pytest.raises(FileNotFoundError):
        other.read(ONE, "2-a", 0, 1)
    assert other.keep(TWO, "empty", [], beside=()) == 0
    assert other.read(TWO, "empty", 0, 10) == b""


@pytest.mark.requirement("results:shared")
def test_a_result_that_could_not_be_kept_whole_leaves_the_one_before(
    new_tables: NewTables,
) -> None:
    log = ResultRows(new_tables())
    log.keep(ONE, "1-a", [b"before"], beside=())

    with pytest.raises(OSError, match="disk fails"):
        log.keep(ONE, "1-a", torn(), beside=())

    assert log.read(ONE, "1-a", 0, 99) == b"before"


@pytest.mark.requirement("results:shared")
def test_results_that_no_run_names_go_with_the_next_one_and_all_with_the_run(
    new_tables: NewTables, postgres_place: PostgresPlace
) -> None:
    log = ResultRows(new_tables())
    for name in ("1-orphan", "1-named"):
        log.keep(ONE, name, [b"x"], beside=("1-orphan",))
    log.keep(ONE, "1-new", [b"y"], beside=("1-named",))

    names = "SELECT name FROM run_result ORDER BY name"
    assert postgres_place.asked(names) == [("1-named",), ("1-new",)]
    log.forget(ONE)
    log.forget(ONE)
    assert postgres_place.asked(names) == []


@pytest.mark.requirement("run-rows:fenced")
def test_a_node_that_is_over_keeps_nothing_and_throws_nothing_away(
    new_tables: NewTables, postgres_place: PostgresPlace
) -> None:
    results = ResultRows(new_tables("another node"))
    results.keep(ONE, "2-a", [b"of its new owner"], beside=())
    postgres_place.execute("UPDATE node SET identity = 'this node', is_over = true")
    tables = new_tables("this node")

    with pytest.raises(Fenced):
        ResultRows(tables).keep(ONE, "1-a", [b"late"], beside=())
    with pytest.raises(Fenced):
        ProgressRows(tables).forget(ONE)

    assert results.read(ONE, "2-a", 0, 99) == b"of its new owner"
    with pytest.raises(FileNotFoundError):
        results.read(ONE, "1-a", 0, 99)


@pytest.mark.requirement("run-rows:restart")
def test_a_server_that_was_restarted_is_asked_again_and_one_that_is_gone_is_told(
    new_tables: NewTables, postgres: PostgresServer
) -> None:
    log = ProgressRows(new_tables())
    log.append(ONE, update(1))

    postgres.kill()
    try:
        with pytest.raises(StoreUnavailable, match="cannot be used"):
            log.append(ONE, update(2))
    finally:
        postgres.start()

    log.append(ONE, update(2))
    assert len(log.read(ONE)) == 2
