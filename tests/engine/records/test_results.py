"""A long result is in a file, its end in the run; both before anybody hears of the end."""

import pytest
from tests.engine.world import World

from subagents.config.settings import Agent, Settings
from subagents.domain.run.run import Phase, Run
from subagents.domain.run.values import announcement_id
from subagents.domain.run.worker_output import RESULT_BYTES_MAX
from subagents.engine.records.results import PIECE_CHARS, _redacted
from subagents.errors import NotFound

LONG = "\n".join(f"line {number} é" for number in range(20_000))
SECRET = "ghp_" + "a1B2" * 9


async def ended(world: World, *results: str) -> Run:
    """A run whose worker gave these results, one after the other."""
    script: tuple[dict[str, object], ...] = tuple({"result": each} for each in results)
    agents = {**world.settings.agents, "long": Agent(runtime="scripted", script=script)}
    settings = Settings(defaults=world.settings.defaults, agents=agents)
    return await world.until(await world.spawn("long", settings=settings), Phase.COMPLETED)


async def whole(world: World, run: Run) -> str:
    return b"".join([page async for page in world.engine.results.pages(run)]).decode()


@pytest.mark.requirement("results:whole")
async def test_a_long_result_is_read_whole_and_its_row_stays_small(world: World) -> None:
    run = await ended(world, LONG)
    conclusion = run.conclusion

    assert conclusion is not None
    assert conclusion.bytes_total == conclusion.bytes_kept == len(LONG.encode())
    assert conclusion.is_cut
    assert LONG.endswith(run.result or "-")
    assert len((run.result or "").encode()) <= RESULT_BYTES_MAX
    assert await world.clock.result(whole(world, run)) == LONG
    assert await world.clock.result(world.engine.results.read(run, 5, 4)) == b"0 \xc3\xa9"

    await world.restart()
    stored = await world.run(run.id)
    assert await world.clock.result(whole(world, stored)) == LONG


@pytest.mark.requirement("results:whole")
async def test_a_result_above_the_bound_keeps_its_end_and_tells_its_size(world: World) -> None:
    world.engine.results._bytes_max = 100_000
    run = await ended(world, LONG)
    conclusion = run.conclusion

    assert conclusion is not None
    assert conclusion.bytes_total == len(LONG.encode())
    assert 80_000 < conclusion.bytes_kept <= 100_000
    assert LONG.endswith(await world.clock.result(whole(world, run)))


@pytest.mark.requirement("results:file")
async def test_the_newest_result_replaces_the_file_and_a_short_one_needs_none(world: World) -> None:
    second = await ended(world, LONG, "short")

    assert await world.clock.result(whole(world, second)) == "short"
    assert second.conclusion is not None
    assert second.conclusion.result_file is None


@pytest.mark.requirement("results:file", "sweep:prune")
async def test_the_file_goes_with_its_run(world: World) -> None:
    run_id = (await ended(world, LONG)).id
    folder = world.directory / "results" / run_id
    assert len(list(folder.iterdir())) == 1
    await world.clock.result(
        world.engine.mailbox.acknowledge([announcement_id(run_id)], reader="me")
    )
    world.clock.jump(2 * 3_600)
    await world.clock.result(world.engine.sweep.once())
    world.clock.jump(8 * 24 * 3_600)

    assert (await world.clock.result(world.engine.sweep.once())).pruned == 1
    assert not folder.exists()


@pytest.mark.requirement("results:file")
async def test_a_result_whose_file_is_gone_says_so(world: World) -> None:
    run = await ended(world, LONG)
    for each in (world.directory / "results" / run.id).iterdir():
        each.unlink()

    with pytest.raises(NotFound, match=r"whole result of .* cannot be read"):
        await world.clock.result(whole(world, run))


@pytest.mark.requirement("results:redacted")
async def test_a_secret_is_in_neither_the_file_nor_the_row(world: World) -> None:
    text = f"begin {SECRET}\n{LONG}\nend {SECRET}"
    run = await ended(world, text)
    found = await world.clock.result(whole(world, run))

    assert SECRET not in found
    assert SECRET not in (run.result or "")
    assert found == text.replace(SECRET, "[redacted]")


@pytest.mark.requirement("results:redacted")
@pytest.mark.parametrize("between", ["\n", " "])
def test_a_secret_across_two_pieces_is_found_in_one_line_and_in_many(between: str) -> None:
    for shift in range(0, 60, 7):
        words = "w" * 50 + between
        text = words * ((PIECE_CHARS - shift) // len(words)) + SECRET + between + words * 20

        assert SECRET.encode() not in b"".join(_redacted([text], ()))
