"""Places for the runtimes' suite: each gives its worker the same work in its own words."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.runtimes.attempt_harness import Harness

from subagents.domain.run.values import replace
from subagents.engine.kernel.system_clock import SystemClock
from subagents.extensions.testing.runtime_suite import Work
from subagents.ports import AttemptRef, Launch, Runtime
from subagents.runtimes.command import CommandRuntime
from subagents.runtimes.scripted import ScriptedRuntime

SPOKEN: Final = ("one", "two", "three")


class ProcessPlace:
    """What all runtimes behind the shim have in common."""

    tool = ""

    def __init__(self, root: Path) -> None:
        self.harness = Harness(root)

    def runtime(self) -> Runtime:
        raise NotImplementedError

    def alive(self) -> int:
        return len(self.harness.carriers())

    def files(self) -> int:
        return sum(1 for each in self.harness.root.rglob("*") if not each.is_dir())

    def used_tool(self, told: Sequence[str]) -> bool:
        return bool(told)

    def messages(self, runtime: Runtime, ref: AttemptRef, output: Sequence[str]) -> Sequence[str]:
        return [text.removeprefix("heard ") for text in output if text.startswith("heard ")]

    def cannot_start(self, launch: Launch) -> Launch:
        return replace(launch, cwd=str(self.harness.root / "not-there"))


class CommandPlace(ProcessPlace):
    """Shell scripts."""

    SCRIPTS: Final[Mapping[Work, str]] = {
        Work.SAYS: (
            "for word in one two three; do echo $word; done\n"
            """echo '{"subagents": "usage", "tokensIn": 5}'"""
        ),
        Work.WAITS: "echo waiting; while :; do sleep 0.1; done",
        Work.LEAVES_A_CHILD: "setsid sleep 600 & echo waiting; while :; do sleep 0.1; done",
        Work.CANNOT_START: "true",
    }

    def runtime(self) -> CommandRuntime:
        return self.harness.runtime()

    def launch(self, work: Work, number: int = 1) -> Launch | None:
        script = self.SCRIPTS.get(work)
        if script is None:
            return None
        launch = self.harness.launch("sh", "-c", script, number=number)
        return self.cannot_start(launch) if work is Work.CANNOT_START else launch


class ScriptedPlace:
    """Scripts inside the daemon: no process, no file, and nothing that outlives it."""

    tool = "Write"

    def __init__(self, root: Path) -> None:
        self.root = root
        self.made: ScriptedRuntime | None = None

    def runtime(self) -> ScriptedRuntime:
        self.made = self.made or ScriptedRuntime(SystemClock())
        return self.made

    def launch(self, work: Work, number: int = 1) -> Launch | None:
        scripts: dict[Work, Sequence[Mapping[str, object]]] = {
            Work.SAYS: [
                *({"print": word} for word in SPOKEN),
                {"usage": {"tokens_in": 5}},
                {"result": SPOKEN[-1]},
            ],
            Work.WAITS: [{"print": "waiting"}, {"hang": True}],
            Work.LISTENS: [{"print": "waiting"}, {"hang": True}],
            Work.USES_A_TOOL: [{"said": {"subagents": "tool", "name": self.tool}}],
            Work.CANNOT_START: [{"fail_start": "no room"}],
        }
        if work not in scripts:
            return None
        launch = Harness(self.root).launch(number=number)
        return replace(launch, options={"script": scripts[work]})

    def messages(self, runtime: Runtime, ref: AttemptRef, output: Sequence[str]) -> Sequence[str]:
        assert isinstance(runtime, ScriptedRuntime)
        return list(runtime._attempts[ref.attempt_id].messages.values())

    def used_tool(self, told: Sequence[str]) -> bool:
        return self.tool in told

    def alive(self) -> int:
        return 0

    def files(self) -> int:
        return 0
