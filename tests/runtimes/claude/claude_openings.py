"""How Claude Code is started in the tests of its command line."""

from typing import Any, Final

from subagents.domain.run.values import AttemptId, RunId, replace
from subagents.runtimes.claude.claude_code import ClaudeDialect
from subagents.runtimes.conversation.dialect import Opening

SESSION: Final = "11111111-2222-4333-8444-555555555555"


DIALECT: Final = ClaudeDialect()


OPENING: Final = Opening(
    attempt_id=AttemptId("r-started#1"),
    run_id=RunId("r-started"),
    number=1,
    turn=1,
    message="do it",
    system_prompt="You are a worker.",
    cwd="/place/project",
    session_uuid=SESSION,
    bridge=("/usr/bin/subagents", "mcp"),
)


def argv(**changes: Any) -> list[str]:
    options = {"program": "/bin/true", **changes.pop("options", {})}
    opening = replace(OPENING, options=options, **changes)
    return list(DIALECT.invocation(opening, directory="/attempt", path="/usr/bin").argv)
