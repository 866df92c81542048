"""The runtimes' suite on real programs: Claude Code, our own loop, and an ACP agent.

Their model is scripted; the programs, their sessions and their tools are real.
"""

import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TypeVar

import pytest
from tests.e2e.acp_setups import ACP
from tests.e2e.program_setups import CLAUDE, LLM, ProgramSetup, node_path
from tests.e2e.scripted_model import Conversation, Say, Script, ScriptedModel, Turn
from tests.extensions.dialects import dialects
from tests.runtimes.attempt_harness import off_loop

from subagents.domain.run.values import (
    RunId,
    SessionKey,
    attempt_id,
)
from subagents.engine.kernel.system_clock import SystemClock
from subagents.extensions.conversation.conversation import ConversationRuntime
from subagents.extensions.testing.conformance import Behaviour
from subagents.extensions.testing.runtime_suite import SUITE, RuntimePlace, Work
from subagents.ports import AttemptRef, Launch, Runtime
from subagents.runtimes.process.processes import marked
from subagents.runtimes.process.shim import ProcessAttempts

T = TypeVar("T")
SETUPS: Final = (CLAUDE, LLM, ACP)
OF_THE_PROGRAM: Final = {
    f"runtime:{name}"
    for name in ("reads", "restart", "stop", "steer", "interrupt", "resume", "scope")
}
"""The others depend on what all conversations share; one real program shows that for all."""
RUN: Final = RunId("r-suite")
BOUND_S: Final = 60.0
HANGS: Final = "tail -f /dev/null --pid=1 -s 51"
"""A plain sleep is refused by Claude Code."""
SCRIPTS: Final = {
    Work.SAYS: "says",
    Work.WAITS: "waits",
    Work.LISTENS: "listens",
    Work.LEAVES_A_CHILD: "leaves",
    Work.USES_A_TOOL: "uses",
    Work.CANNOT_START: "says",
}


class ProgramPlace:
    """One program of ``program_setups`` behind its own dialect."""

    def __init__(self, setup: ProgramSetup, root: Path, url: str) -> None:
        self.setup = setup
        self.tool = setup.shell_tool
        self.root = root / "attempts"
        self.work = root / "work"
        self.work.mkdir()
        own = root / "program"
        own.mkdir()
        setup.prepare(url, own)
        # A home of its own: Claude Code reads a login shell's files before its first command.
        env = {"PATH": node_path(), "HOME": str(own), **setup.env(url, own)}
        self.options = {**setup.options, "env": env, "pass_env": []}
        self.dialect = next(each for each in dialects() if each.name == setup.runtime)

    def runtime(self) -> Runtime:
        clock = SystemClock()
        attempts = ProcessAttempts(self.root, clock, off_loop)
        return ConversationRuntime(self.dialect, attempts, clock, off_loop, bridge=())

    def launch(self, work: Work, number: int = 1) -> Launch | None:
        task = f"script:{SCRIPTS[work]}"
        cwd = self.work / "not-there" if work is Work.CANNOT_START else self.work
        return Launch(
            attempt_id=attempt_id(RUN, number),
            run_id=RUN,
            number=number,
            session_key=SessionKey("agent:a:subagent:1"),
            requester=SessionKey("agent:main:main"),
            agent_id="a",
            label="suite",
            task=task,
            prompt=task,
            previous_results="",
            system_prompt="",
            cwd=str(cwd),
            options=self.options,
            model=self.setup.model,
        )

    def messages(self, runtime: Runtime, ref: AttemptRef, said: Sequence[str]) -> Sequence[str]:
        return [word for text in said if text.startswith("got ") for word in text.split()[1:]]

    def used_tool(self, told: Sequence[str]) -> bool:
        """Whatever it says of its tools: the file decides."""
        return (self.work / "made").exists()

    def carriers(self) -> list[int]:
        return [pid for _, pid in marked(str(self.root))]

    def alive(self) -> int:
        return len(self.carriers())

    def files(self) -> int:
        return sum(1 for each in self.root.rglob("*") if not each.is_dir())

    def end(self) -> None:
        due = time.monotonic() + BOUND_S
        while (left := self.carriers()) and time.monotonic() < due:
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def scripts_of(setup: ProgramSetup, work: Path) -> dict[str, Script]:
    def saying(text: str, line: str) -> Turn:
        used = setup.shell(line)
        return type(used)(used.tool, used.arguments, text=text, is_declared=False)

    def listening(seen: Conversation) -> Turn:
        times = seen.seen.count("hello")
        return Say("got " + " ".join(["hello"] * times)) if times else setup.shell("true")

    return {
        "says": (saying("one", "true"), saying("two", "true"), Say("three")),
        "waits": (saying("waiting", HANGS),),
        "listens": (saying("waiting", "true"), *[listening] * 400),
        "leaves": (saying("waiting", f"setsid {HANGS} >/dev/null 2>&1 & {HANGS}"),),
        "uses": (saying("", f"touch {work / 'made'}"), Say("done")),
    }


@contextmanager
def placed(setup: ProgramSetup, root: Path) -> Iterator[ProgramPlace]:
    with ScriptedModel(scripts_of(setup, root / "work")) as model:
        place = ProgramPlace(setup, root, model.url)
        try:
            yield place
        finally:
            place.end()


@pytest.mark.parametrize(
    ("setup", "behaviour"),
    [
        pytest.param(
            setup,
            each,
            id=f"{setup.name}-{each.name}",
            marks=pytest.mark.requirement(each.requirement),
        )
        for setup in SETUPS
        for each in SUITE.behaviours
        if setup is CLAUDE or each.requirement in OF_THE_PROGRAM
    ],
)
def test_a_real_program_keeps_this_promise(
    setup: ProgramSetup, behaviour: Behaviour[RuntimePlace], tmp_path: Path
) -> None:
    if (reason := setup.missing()) is not None:
        pytest.skip(reason)
    with placed(setup, tmp_path) as place:
        behaviour.check(place)
