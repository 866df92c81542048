"""A daemon whose store is in PostgreSQL: killed, and with a server that is killed."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.live_home import LiveHome, audit, lines, live_home, numbered, until
from tests.extensions.cluster.postgres.postgres_server import PostgresPlace, PostgresServer, running

from subagents.errors import Unavailable


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with running() as server:
        yield server


@pytest.fixture
def place(server: PostgresServer, tmp_path: Path) -> PostgresPlace:
    return PostgresPlace(server, tmp_path)


@pytest.fixture
def home(place: PostgresPlace, tmp_path: Path) -> Iterator[LiveHome]:
    with live_home(tmp_path, place=place) as home:
        yield home


def assert_each_ended_once(home: LiveHome, run_ids: list[str], result: str) -> None:
    assert {item["result"] for item in home.finish(*run_ids)} == {result}
    until(lambda: all(home.row(each)["phase"] == "completed" for each in run_ids), what="cleanup")
    home.stop()
    found = audit(home, run_ids)
    assert set(found.consumed.values()) == {1}
    assert sorted(home.marks_written()) == sorted(f"{run_id}#1" for run_id in run_ids)
    with home.reading() as store:
        assert store.check() == []


@pytest.mark.requirement("store:postgres", "recovery:kill")
def test_runs_go_on_when_the_daemon_is_killed_and_started_again(home: LiveHome) -> None:
    run_ids = [home.spawn(lines(100)) for _ in range(5)]
    until(lambda: all(map(home.output, run_ids)), what="output")
    home.restart_after_kill()

    assert_each_ended_once(home, run_ids, numbered(100))
    assert not home.paths.database.exists()


@pytest.mark.requirement("store:postgres", "store:server-restarts")
def test_runs_go_on_when_the_server_is_killed_and_started_again(
    home: LiveHome, server: PostgresServer
) -> None:
    run_ids = [home.spawn(lines(100)) for _ in range(5)]
    until(lambda: all(map(home.output, run_ids)), what="output")
    server.kill()
    try:
        with pytest.raises(Unavailable):
            home.spawn("echo lost")
    finally:
        server.start()
    until(lambda: home.get("/healthz").get("degraded") is None, what="recovery")

    assert_each_ended_once(home, run_ids, numbered(100))


@pytest.mark.requirement("store:postgres", "store:server-restarts")
def test_a_restart_of_the_server_between_two_calls_is_not_noticed(
    home: LiveHome, server: PostgresServer
) -> None:
    first = home.spawn("echo done")
    home.finish(first)
    until(lambda: home.row(first)["phase"] == "completed", what="cleanup")
    server.kill()
    server.start()

    second = home.spawn("echo done")
    assert home.finish(second)[0]["result"] == "done"
    assert home.row(first)["phase"] == "completed"
