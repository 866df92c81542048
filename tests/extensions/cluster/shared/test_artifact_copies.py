"""Files that passed their contract are read from their copies, also when they are gone."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.engine.world import World, in_world
from tests.extensions.cluster.postgres.postgres_server import PostgresPlace, PostgresServer, running

from subagents.domain.run.spec import Artifact, Contract
from subagents.domain.run.values import RunId
from subagents.errors import NotFound, StoreUnavailable
from subagents.extensions.cluster.shared.artifact_rows import ArtifactRows
from subagents.extensions.cluster.shared.run_tables import RunTables


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with running(is_durable=False) as found:
        yield found


@pytest.fixture
def tables(server: PostgresServer, tmp_path: Path) -> Iterator[RunTables]:
    place = PostgresPlace(server, tmp_path)
    store = place.store()
    store.open("tests")
    store.close()
    found = RunTables(place.url, lambda: "a node")
    yield found
    found.close()


def contract(*paths: str) -> Contract:
    """Files that may be there before the run."""
    return Contract(
        artifacts=tuple(
            Artifact(path=each, min_files=1 if "*" in each else None) for each in paths
        ),
        fresh=False,
    )


async def content(world: World, run_id: RunId, path: str) -> bytes:
    opened = await world.engine.artifacts.open(await world.run(run_id), path)
    try:
        return b"".join([page async for page in opened.pages(0, opened.size)])
    finally:
        opened.close()


@pytest.mark.requirement("artifacts:copied")
def test_what_passed_is_read_as_it_was_when_it_passed_and_goes_with_its_run(
    tmp_path: Path, tables: RunTables
) -> None:
    work = tmp_path / "work"
    (work / "logs").mkdir(parents=True)
    for name in ("logs/a.log", "logs/b.log", "out.txt"):
        (work / name).write_text(f"{name} of the worker")

    async def scenario(world: World) -> None:
        world.engine.artifacts._copies = ArtifactRows(tables, None)
        run_id = await world.spawn(cwd=str(work), verification=contract("logs/*.log", "out.txt"))
        run = await world.until(run_id)
        assert run.outcome is not None
        assert run.outcome.is_ok, run.outcome
        (work / "out.txt").write_text("changed since")
        (work / "logs/a.log").unlink()

        assert await content(world, run_id, "out.txt") == b"out.txt of the worker"
        assert await content(world, run_id, "logs/a.log") == b"logs/a.log of the worker"
        (named,) = await world.engine.artifacts.named(run)
        assert (named.path, named.size) == ("out.txt", len("out.txt of the worker"))
        with pytest.raises(NotFound, match="names"):
            await content(world, run_id, "logs/../out.txt")

        await world.engine.sweep._forget(run_id)
        assert await content(world, run_id, "out.txt") == b"changed since"

    in_world(tmp_path, scenario)


@pytest.mark.requirement("artifacts:copied")
def test_a_run_whose_contract_failed_has_no_copies(tmp_path: Path, tables: RunTables) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/a.log").write_text("a")

    async def scenario(world: World) -> None:
        copies = world.engine.artifacts._copies = ArtifactRows(tables, None)
        wanted = contract("logs/*.log", "never-made.txt")
        run = await world.until(await world.spawn(cwd=str(tmp_path), verification=wanted))
        assert run.outcome is not None
        assert not run.outcome.is_ok
        assert copies.sizes(run.id) == {}

    in_world(tmp_path, scenario)


@pytest.mark.requirement("artifacts:copied")
def test_a_copy_that_cannot_be_made_fails_no_run(
    tmp_path: Path, tables: RunTables, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "out.txt").write_text("here")

    class Away(ArtifactRows):
        def keep(self, *_: object) -> bool:
            raise StoreUnavailable("the object store is away")

    async def scenario(world: World) -> None:
        world.engine.artifacts._copies = Away(tables, None)
        run_id = await world.spawn(cwd=str(tmp_path), verification=contract("out.txt"))
        run = await world.until(run_id)
        assert run.outcome is not None
        assert run.outcome.is_ok
        assert f"no copy of out.txt of {run_id} is kept: the object store is away" in caplog.text
        assert await content(world, run_id, "out.txt") == b"here"

    in_world(tmp_path, scenario)


@pytest.mark.requirement("sweep:tidies")
def test_an_object_store_that_is_away_keeps_a_sweep_from_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tries = []

    def tidy() -> None:
        tries.append(1)
        raise StoreUnavailable("the object store is away")

    async def scenario(world: World) -> None:
        world.engine.sweep._tidy_logs = tidy
        for _ in range(2):
            report = await world.clock.result(world.engine.sweep.once())
            assert report.orphans == ()
        assert tries == [1, 1]
        assert "stays where it is for now: the object store is away" in caplog.text

    in_world(tmp_path, scenario)
