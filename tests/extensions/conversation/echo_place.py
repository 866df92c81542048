"""A program with a protocol of its own, for the runtimes' suite."""

from collections.abc import Sequence
from pathlib import Path

from tests.extensions.conversation.echo_dialect import EchoDialect, EchoState
from tests.runtimes.attempt_harness import Harness

from subagents.domain.run.signals import UsageSeen
from subagents.domain.run.usage import Usage
from subagents.extensions.conversation import conversation
from subagents.extensions.conversation.dialect import TurnStep
from subagents.extensions.testing.process_place import ProcessPlace
from subagents.extensions.testing.runtime_suite import Work
from subagents.ports import AttemptRef, Runtime


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

    tasks = {
        Work.SAYS: "text one;text two;text three;usage 5",
        Work.WAITS: "text waiting;listen",
        Work.LISTENS: "text waiting;listen",
        Work.LEAVES_A_CHILD: "child;text waiting;listen",
        Work.CANNOT_START: "text never",
    }

    def __init__(self, root: Path) -> None:
        super().__init__(root, lambda host: conversation.runtime_on(host, ToldAtOnce()))
        self.harness = Harness(root)

    def messages(self, runtime: Runtime, ref: AttemptRef, texts: Sequence[str]) -> Sequence[str]:
        heard = super().messages(runtime, ref, texts)
        return [each.removeprefix("heard ") for each in heard]
