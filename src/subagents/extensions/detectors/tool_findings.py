"""What the output of a tool tells."""

from collections.abc import Sequence

from subagents.domain.alerts.detectors.findings import Commits, Finding
from subagents.domain.run.worker_output import ToolUse
from subagents.extensions.detectors.builds import result_of
from subagents.extensions.detectors.commits import commits_of


def findings_of(tool: ToolUse) -> Sequence[Finding]:
    """The hook ``detectors``: its commits, and how its build ended."""
    messages, result = commits_of(tool), result_of(tool)
    commits = (Commits(messages),) if messages else ()
    return commits if result is None else (*commits, result)
