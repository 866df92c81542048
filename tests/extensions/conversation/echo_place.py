"""A program with a protocol of its own, for the runtimes' suite."""

from collections.abc import Mapping
from typing import Final

from tests.extensions.conversation.echo_dialect import EchoDialect, EchoState
from tests.runtimes.attempt_harness import off_loop
from tests.runtimes.runtime_places import ProcessPlace

from subagents.domain.run.signals import UsageSeen
from subagents.domain.run.usage import Usage
from subagents.domain.run.values import replace
from subagents.engine.kernel.system_clock import SystemClock
from subagents.extensions.conversation.conversation import ConversationRuntime
from subagents.extensions.conversation.dialect import TurnStep
from subagents.extensions.testing.runtime_suite import Work
from subagents.ports import Launch, Runtime
from subagents.runtimes.process.shim import ProcessAttempts


class ToldAtOnce(EchoDialect):
    """Tells usage and result in one line, as many programs do."""

    def read_line(
        self, state: EchoState, line: bytes, *, now_ms: int | None
    ) -> TurnStep[EchoState]:
        step = super().read_line(state, line, now_ms=now_ms)
        if not line.startswith(b"done"):
            return step
        usage = UsageSeen(key="", usage=Usage(tokens_in=9))
        return TurnStep(step.state, signals=(usage, *step.signals))


class EchoPlace(ProcessPlace):
    """A program with a protocol of its own, behind the generic conversation."""

    WORDS: Final[Mapping[Work, str]] = {
        Work.SAYS: "text one;text two;text three;usage 5",
        Work.WAITS: "text waiting;listen",
        Work.LISTENS: "text waiting;listen",
        Work.LEAVES_A_CHILD: "child;text waiting;listen",
        Work.CANNOT_START: "text never",
    }

    def runtime(self) -> Runtime:
        clock = SystemClock()
        attempts = ProcessAttempts(self.harness.root, clock, off_loop)
        return ConversationRuntime(ToldAtOnce(), attempts, clock, off_loop, bridge=())

    def launch(self, work: Work, number: int = 1) -> Launch | None:
        words = self.WORDS.get(work)
        if words is None:
            return None
        launch = replace(self.harness.launch(number=number), prompt=words, options={})
        return self.cannot_start(launch) if work is Work.CANNOT_START else launch
