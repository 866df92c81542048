"""A whole engine and a real program that is talked to: going on, interrupting, surviving."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest
from tests.extensions.conversation.echo_dialect import EchoDialect
from tests.runtimes.attempt_harness import BOUND_S, Harness, off_loop

from subagents.config.paths import Paths
from subagents.config.settings import Agent, Settings, SubagentDefaults
from subagents.domain.run.outcome import Reason, Status
from subagents.domain.run.run import Phase, Run
from subagents.domain.run.spec import RunSpec
from subagents.domain.run.values import RunId, SessionKey
from subagents.engine.engine import Adapters, Engine
from subagents.engine.kernel.system_clock import RandomIds, SystemClock
from subagents.engine.runs.sessions import Sent
from subagents.engine.runs.spawn_call import SpawnContext
from subagents.engine.verification.verifier import Verifier
from subagents.extensions.conversation.conversation import ConversationRuntime
from subagents.ports import RunLogs
from subagents.runtimes.process.shim import ProcessAttempts
from subagents.store.allowed_call_file import AllowedCallFile
from subagents.store.environment_files import EnvironmentFiles
from subagents.store.progress_files import ProgressFiles
from subagents.store.result_files import ResultFiles
from subagents.store.sqlite.sqlite_store import SqliteStore
from subagents.store.transcripts.transcript_files import TranscriptFiles

ME: Final = SessionKey("agent:main:main")
SETTINGS: Final = Settings(
    defaults=SubagentDefaults(max_children_per_agent=20, max_concurrent=4),
    agents={"echo": Agent(runtime="echo", grace_seconds=1)},
)


class Desk:
    """Asks one engine, as a person would."""

    def __init__(self, harness: Harness, engine: Engine) -> None:
        self.engine = engine
        self._cwd = str(harness.cwd)

    async def spawn(self, words: str) -> RunId:
        spec = RunSpec(task=words, agent_id="echo", label="job")
        receipt = await self.engine.spawner.spawn(
            spec, SpawnContext(session=ME, settings=SETTINGS, cwd=self._cwd)
        )
        return receipt.run.id

    async def send(self, run_id: RunId, message: str, *, key: str | None = None) -> Sent:
        return await self.engine.sessions.send(
            run_id, message, SpawnContext(session=ME, settings=SETTINGS), key=key
        )

    async def fits(self, run_id: RunId, is_so: Callable[[Run], bool]) -> Run:
        """The run once it is so; fails after the deadline."""
        async with asyncio.timeout(BOUND_S):
            while not is_so(run := await self.engine.queries.run(run_id)):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            return run

    async def until(self, run_id: RunId, phase: Phase) -> Run:
        return await self.fits(run_id, lambda run: run.phase is phase)

    async def over(self, run_id: RunId) -> Run:
        return await self.until(run_id, Phase.COMPLETED)


@asynccontextmanager
async def engine_of(harness: Harness) -> AsyncIterator[Desk]:
    """One daemon's life on the bench's files; workers outlive it."""
    state = harness.root.parent / "state"
    state.mkdir(exist_ok=True)
    clock = SystemClock()
    attempts = ProcessAttempts(harness.root, clock, off_loop)
    echo = ConversationRuntime(EchoDialect(), attempts, clock, off_loop, bridge=())
    engine = Engine(
        Adapters(
            store=SqliteStore(state / "db.sqlite"),
            runtimes={"echo": echo},
            couriers={},
            clock=clock,
            ids=RandomIds(clock),
            off_loop=off_loop,
            verifier=Verifier(off_loop, clock, commands_allowed=False),
            settings=SETTINGS,
            owner="test",
            logs=RunLogs(
                allowed_calls=AllowedCallFile(Paths.resolve({"SUBAGENTS_HOME": str(state)})),
                environments=EnvironmentFiles(state / "environments"),
                progress=ProgressFiles(state / "progress"),
                results=ResultFiles(state / "results"),
                transcripts=TranscriptFiles(state / "transcripts"),
            ),
            state_dir=state,
        )
    )
    await engine.start()
    try:
        yield Desk(harness, engine)
    finally:
        await engine.stop()


@pytest.mark.requirement("sessions:real-program")
def test_a_program_goes_on_with_its_own_session_from_run_to_run(tmp_path: Path) -> None:
    async def go(harness: Harness) -> None:
        async with engine_of(harness) as desk:
            first = await desk.over(await desk.spawn("text hello"))
            sent = await desk.send(first.id, "text again")
            second = await desk.over(sent.run.id)
        # A new daemon, and the last name that the program gave its session.
        async with engine_of(harness) as desk:
            sent = await desk.send(first.id, "text a third time")
            third = await desk.over(sent.run.id)

        assert [run.result for run in (first, second, third)] == [
            "hello",
            "again",
            "a third time",
        ]
        names = [run.native_session for run in (first, second, third)]
        assert names == ["s-new", "s-new+", "s-new++"]
        assert third.session.continues is not None
        assert (third.session.continues.run_id, third.session.continues.root) == (
            second.id,
            first.id,
        )

    with Harness(tmp_path) as harness:
        asyncio.run(go(harness))
        assert not harness.carriers()


@pytest.mark.requirement("sessions:real-program")
def test_an_interrupted_program_says_its_last_words_and_takes_the_next_message(
    tmp_path: Path,
) -> None:
    async def go(harness: Harness) -> None:
        async with engine_of(harness) as desk:
            first = await desk.spawn("text half of it;child;listen")
            await desk.until(first, Phase.RUNNING)
            sent = await desk.send(first, "louder", key="m1")
            await desk.fits(first, lambda run: not run.control.steers)
            await desk.engine.control.interrupt(first, by=ME, reason="enough")
            ended = await desk.over(first)
            again = await desk.send(first, "text the other half")
            whole = await desk.over(again.run.id)

        assert (sent.status, sent.run.id) == ("steered", first)
        assert ended.outcome is not None
        assert (ended.outcome.status, ended.outcome.reason) == (
            Status.PARTIAL,
            Reason.INTERRUPTED,
        )
        # Its own last words, and its own exit; its shell's child is reaped all the same.
        assert ended.result in {"half of it", "heard louder"}
        assert ended.attempt.evidence.exit is not None
        assert ended.attempt.evidence.exit.code == 0
        assert (whole.result, whole.native_session) == ("the other half", "s-new+")

    with Harness(tmp_path) as harness:
        asyncio.run(go(harness))
        assert not harness.carriers()


@pytest.mark.requirement("sessions:real-program")
def test_a_session_is_gone_on_with_after_its_run_was_stopped_over_a_restart(
    tmp_path: Path,
) -> None:
    async def go(harness: Harness) -> None:
        async with engine_of(harness) as desk:
            first = await desk.spawn("text begun;listen")
            await desk.until(first, Phase.RUNNING)
            await desk.fits(first, lambda run: run.native_session is not None)
        async with engine_of(harness) as desk:
            await desk.engine.control.cancel(first, by="me")
            cancelled = await desk.over(first)
            sent = await desk.send(first, "text salvaged")
            saved = await desk.over(sent.run.id)

        assert cancelled.outcome is not None
        assert cancelled.outcome.status is Status.CANCELLED
        assert (saved.result, saved.native_session) == ("salvaged", "s-new+")

    with Harness(tmp_path) as harness:
        asyncio.run(go(harness))
        assert not harness.carriers()
