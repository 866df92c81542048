"""Every worker can prove which attempt it is, and nobody else can; nothing secret is stored."""

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.engine.world import WatchedRuntime, World

from subagents.domain.run.events import SlotGranted, TokenIssued
from subagents.domain.run.run import Phase
from subagents.domain.run.spec import Abilities
from subagents.domain.run.values import RunId
from subagents.engine.kernel.system_clock import RandomIds, SystemClock
from subagents.engine.kernel.worker_tokens import (
    Identity,
    Issued,
    digest,
)
from subagents.errors import Unauthorized
from subagents.ports import AttemptRef, Launch, StartedInfo

TOKEN = "SUBAGENTS_TOKEN"
TURNS = Abilities(steer=True, resume=True, scope_tools=True)


class AskingRuntime(WatchedRuntime):
    """At the instant it is asked to start something, it asks whether that worker could speak."""

    def __init__(self, world: World, abilities: Abilities | None = None) -> None:
        super().__init__(world.clock, abilities)
        self.world = world
        self.known: list[Identity] = []
        self.is_mute = False

    async def start(self, launch: Launch) -> StartedInfo:
        self.known.append(self.world.engine.identify(launch.env[TOKEN]))
        started = await super().start(launch)
        if self.is_mute:
            await asyncio.get_running_loop().create_future()
        return started

    async def resume(self, ref: AttemptRef, message: str, *, env: Mapping[str, str]) -> StartedInfo:
        self.known.append(self.world.engine.identify(env[TOKEN]))
        return await super().resume(ref, message, env=env)


def issued(world: World, run_id: RunId) -> list[TokenIssued]:
    entries = world.store.journal(run_id, limit=1000)
    return [entry.event for entry in entries if isinstance(entry.event, TokenIssued)]


def content(directory: Path) -> bytes:
    return b"".join(file.read_bytes() for file in directory.iterdir() if file.is_file())


@pytest.mark.requirement("token:names-the-attempt")
async def test_a_worker_is_started_with_a_token_that_names_its_attempt(world: World) -> None:
    run_id = await world.spawn("slow")
    run = await world.until(run_id, Phase.RUNNING)
    (launch,) = world.runtime.launches
    token = launch.env[TOKEN]

    assert re.fullmatch(rf"sa_{run_id}_1_[A-Za-z0-9_-]{{43}}", token)
    assert world.engine.identify(token) == (run_id, 1, run.session_key)


@pytest.mark.requirement("token:only-a-hash-is-stored")
async def test_the_store_holds_the_hash_of_a_token_and_never_the_token(
    world: World, tmp_path: Path
) -> None:
    run_id = await world.spawn("slow")
    run = await world.until(run_id, Phase.RUNNING)
    token = world.runtime.launches[0].env[TOKEN]
    stored = content(tmp_path)

    assert run.attempt.token_hashes == (digest(token),)
    assert digest(token).encode() in stored
    assert token.encode() not in stored
    assert token.split("_", 3)[3].encode() not in stored


@pytest.mark.requirement("token:no-extra-commit")
async def test_a_token_costs_no_event_of_its_own_and_is_forgotten_once_its_worker_has_it(
    world: World,
) -> None:
    run_id = await world.spawn("slow")
    await world.until(run_id, Phase.RUNNING)
    entries = world.store.journal(run_id)
    (granted,) = (e.event for e in entries if isinstance(e.event, SlotGranted))

    assert granted.token_hash == digest(world.runtime.launches[0].env[TOKEN])
    assert issued(world, run_id) == []
    assert world.engine.ledger.tokens.get(run_id, 1) is None


@pytest.mark.requirement("token:survives-a-crash-before-the-start")
async def test_a_crash_before_the_start_gives_the_worker_another_token_that_works(
    world: World,
) -> None:
    world.runtime.hangs = True
    run_id = await world.spawn("slow")
    await world.until(run_id, Phase.SPAWNING)
    lost = world.runtime.launches[0].env[TOKEN]
    await world.crash()
    asking = AskingRuntime(world)
    await world.boot(asking)
    run = await world.until(run_id, Phase.RUNNING)
    token = asking.launches[0].env[TOKEN]

    assert token != lost
    assert asking.known == [(run_id, 1, run.session_key)]
    assert [event.token_hash for event in issued(world, run_id)] == [digest(token)]
    assert run.attempt.token_hashes == (digest(lost), digest(token))
    assert await world.folded(run_id) == run


@pytest.mark.requirement("token:survives-a-crash-before-the-start")
async def test_a_worker_that_was_started_before_the_crash_keeps_its_token(world: World) -> None:
    """Nobody knows whether it was started until the runtime says that it adopted it."""
    asking = AskingRuntime(world)
    await world.crash()
    await world.boot(asking)
    asking.is_mute = True
    run_id = await world.spawn("slow")
    await world.until(run_id, Phase.SPAWNING)
    asking.is_mute = False
    await world.restart()
    run = await world.until(run_id, Phase.RUNNING)
    has, was_offered = (launch.env[TOKEN] for launch in asking.launches)

    assert has != was_offered
    assert world.engine.identify(has) == (run_id, 1, run.session_key)


@pytest.mark.requirement("token:dies-with-its-attempt")
async def test_a_token_of_an_earlier_attempt_is_refused_while_the_next_one_works(
    world: World,
) -> None:
    run_id = await world.spawn("flaky", retry_count=1, retry_delay=60_000)
    await world.until(run_id, Phase.RETRY_WAIT)
    first = world.runtime.launches[0].env[TOKEN]
    with pytest.raises(Unauthorized, match=f"attempt 1 of run {run_id} is over"):
        world.engine.identify(first)
    world.runtime.hangs = True
    await world.until(run_id, Phase.SPAWNING)
    second = world.runtime.launches[1].env[TOKEN]

    assert world.engine.identify(second).attempt == 2
    with pytest.raises(Unauthorized, match=r"belongs to attempt 1 .* attempt 2 is under way"):
        world.engine.identify(first)


@pytest.mark.requirement("token:dies-with-its-run")
async def test_a_token_of_a_run_that_has_ended_is_refused(world: World) -> None:
    run_id = await world.spawn("quick")
    await world.until(run_id, Phase.COMPLETED)
    with pytest.raises(Unauthorized, match="over") as caught:
        world.engine.identify(world.runtime.launches[0].env[TOKEN])

    assert caught.value.hint is not None
    assert "end this process" in caught.value.hint


@pytest.mark.requirement("token:unknown")
async def test_what_is_no_token_of_ours_is_refused_without_saying_what_was_wrong(
    world: World,
) -> None:
    run_id = await world.spawn("slow")
    await world.until(run_id, Phase.RUNNING)
    token = world.runtime.launches[0].env[TOKEN]
    texts = set()
    for forged in (
        token[:-1] + ("A" if token[-1] != "A" else "B"),
        token.replace(f"{run_id}_1_", f"{run_id}_2_"),
        token.replace(run_id, "r-0000000099"),
    ):
        with pytest.raises(Unauthorized) as caught:
            world.engine.identify(forged)
        texts.add(caught.value.message)
    assert texts == {"the token is unknown, or its run is over"}
    for other in ("", "x", token[:-1], f"{token}A", f" {token}", "sa__1_" + "a" * 43):
        with pytest.raises(Unauthorized, match="no token of this daemon"):
            world.engine.identify(other)


@pytest.mark.requirement("token:next-turn")
@pytest.mark.world(max_spawn_depth=2)
async def test_a_further_turn_has_a_token_that_works_from_its_first_instant(world: World) -> None:
    asking = AskingRuntime(world, TURNS)
    await world.crash()
    await world.boot(asking)
    parent = await world.spawn("parent")
    await world.until(parent, Phase.RUNNING)
    await world.spawn_child(parent, "slow")
    first = asking.launches[0].env[TOKEN]
    await world.until(parent, Phase.ENDING)
    with pytest.raises(Unauthorized, match="is over"):
        world.engine.identify(first)
    run = await world.until(parent)

    assert run.attempt.turn.number == 2
    assert asking.known[-1] == (parent, 1, run.session_key)
    (event,) = issued(world, parent)
    assert event.token_hash == run.attempt.token_hashes[-1]


@pytest.mark.requirement("token:survives-a-crash-before-the-start")
async def test_a_disk_that_says_no_before_the_start_costs_no_worker_its_token(world: World) -> None:
    world.runtime.hangs = True
    run_id = await world.spawn("slow")
    await world.until(run_id, Phase.SPAWNING)
    await world.crash()
    asking = AskingRuntime(world)
    await world.boot(asking)
    world.store.failures_left = 1
    run = await world.until(run_id, Phase.RUNNING)

    assert world.store.failures_left == 0
    assert asking.known == [(run_id, 1, run.session_key)]
    assert len(issued(world, run_id)) == 1


@pytest.mark.requirement("token:unguessable")
def test_real_tokens_hold_43_random_url_safe_characters() -> None:
    ids = RandomIds(SystemClock())
    found = {ids.token_secret() for _ in range(100)}

    assert len(found) == 100
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{43}", each) for each in found)


@pytest.mark.requirement("token:names-the-attempt")
def test_a_token_is_kept_for_the_attempt_it_was_made_for_only() -> None:
    kept, run_id = Issued(), RunId("r-1")
    hashed = kept.issue(run_id, 1, "a" * 43)
    token = kept.get(run_id, 1)

    assert token is not None
    assert digest(token) == hashed
    assert kept.get(run_id, 2) is None
    kept.throw_away(run_id, 2)
    assert kept.get(run_id, 1) == token
    kept.throw_away(run_id)
    assert kept.get(run_id, 1) is None
