"""The plan of a Claude Code worker, which it writes one item at a time; pure.

``TaskCreate`` adds an item, ``TaskUpdate`` changes one. Only what the program says it did counts
(``tool_use_result``): a call that was refused or failed changes no plan.
"""

from collections.abc import Mapping
from typing import Final

from subagents.domain.run.values import Value, replace
from subagents.domain.run.worker_output import PlanItem, PlanStatus
from subagents.extensions.conversation.json_fields import table_at, text_at
from subagents.runtimes.output.terminal_text import plain
from subagents.runtimes.output.tool_lines import PLAN_ITEMS_MAX, SHORT_CHARS_MAX
from subagents.text import one_line

PLAN_TOOLS: Final = frozenset({"TaskCreate", "TaskUpdate"})
_STATUSES: Final = {status.value: status for status in PlanStatus}


class ClaudeTask(Value, frozen=True):
    """One item, under the id that the program gave it."""

    id: str
    item: PlanItem


def changed(
    tasks: tuple[ClaudeTask, ...],
    name: str,
    given: Mapping[str, object],
    returned: Mapping[str, object],
) -> tuple[ClaudeTask, ...]:
    """The plan after one tool ended.

    Args:
        tasks: Before it.
        name: Of the tool; of any other than the two the plan stays as it is.
        given: Its input.
        returned: What it returned, as data.
    """
    match name:
        case "TaskCreate":
            task = table_at(returned, "task")
            if not text_at(task, "id") or len(tasks) >= PLAN_ITEMS_MAX:
                return tasks
            item = PlanItem(text=_shown(text_at(task, "subject")))
            return (*tasks, ClaudeTask(text_at(task, "id"), item))
        case "TaskUpdate" if returned.get("success") is True:
            return tuple(
                after
                for task in tasks
                for after in (_updated(task, given) if task.id == given.get("taskId") else (task,))
            )
        case _:
            return tasks


def _updated(task: ClaudeTask, given: Mapping[str, object]) -> tuple[ClaudeTask, ...]:
    """The task with what was given; none when it was deleted."""
    if given.get("status") == "deleted":
        return ()
    status = _STATUSES.get(text_at(given, "status"), task.item.status)
    text = _shown(text_at(given, "subject")) or task.item.text
    return (replace(task, item=PlanItem(text=text, status=status)),)


def _shown(text: str) -> str:
    return one_line(plain(text), SHORT_CHARS_MAX)
