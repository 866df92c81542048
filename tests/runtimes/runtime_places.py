"""Places for the runtimes' suite: each gives its worker the same work in its own words."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.runtimes.attempt_harness import Harness

from subagents.domain.run.values import replace
from subagents.engine.kernel.system_clock import SystemClock
from subagents.extensions.testing.process_place import ProcessPlace
from subagents.extensions.testing.runtime_suite import Work
from subagents.ports import AttemptRef, Launch, Runtime
from subagents.runtimes.scripted import ScriptedRuntime

SPOKEN: Final = ("one", "two", "three")


class CommandPlace(ProcessPlace):
    """Shell scripts."""

    tasks: Mapping[Work, str] = {
        Work.SAYS: (
            "for word in one two three; do echo $word; done\n"
            """echo '{"subagents": "usage", "tokensIn": 5}'"""
        ),
        Work.WAITS: "echo waiting; while :; do sleep 0.1; done",
        Work.LEAVES_A_CHILD: "setsid sleep 600 & echo waiting; while :; do sleep 0.1; done",
        Work.CANNOT_START: "true",
    }

    def __init__(self, root: Path) -> None:
        self.harness = Harness(root)
        super().__init__(root, lambda _: self.harness.runtime())

    def launch(self, work: Work, number: int = 1) -> Launch | None:
        launch = super().launch(work, number)
        options = {"command": ["sh", "-c", self.tasks.get(work, "")]}
        return launch and replace(launch, options=options)


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
