"""The plan that Claude Code writes item by item: what happened counts, not what was asked."""

import json

import pytest
from tests.extensions.claude.claude_folds import event, fold

from subagents.domain.run.worker_output import PlanItem, PlanStatus

DONE = PlanStatus.COMPLETED
NOW = PlanStatus.IN_PROGRESS


def call(name: str, number: int, **given: object) -> bytes:
    block = {"type": "tool_use", "id": f"t{number}", "name": name, "input": given}
    return event(type="assistant", message={"role": "assistant", "content": [block]})


def ended(number: int, returned: object, *, is_error: bool = False) -> bytes:
    block = {"type": "tool_result", "tool_use_id": f"t{number}", "content": "said"}
    message = {"role": "user", "content": [block | ({"is_error": True} if is_error else {})]}
    return event(type="user", message=message, tool_use_result=returned)


def created(number: int, task: str, subject: str) -> list[bytes]:
    returned = {"task": {"id": task, "subject": subject, "description": "d"}}
    return [call("TaskCreate", number, subject=subject), ended(number, returned)]


def updated(number: int, task: str, *, success: bool = True, **given: str) -> list[bytes]:
    returned = {"success": success, "taskId": task, "updatedFields": list(given)}
    return [call("TaskUpdate", number, taskId=task, **given), ended(number, returned)]


def plans(lines: list[bytes]) -> list[tuple[PlanItem, ...]]:
    found = fold(lines).output
    return [
        each.tool.plan for each in found if each.tool is not None and each.tool.plan is not None
    ]


TWO = [*created(1, "1", "Write it"), *created(2, "2", "Test it")]


@pytest.mark.requirement("claude-worker:stream:task-tools")
def test_each_task_that_was_created_or_changed_gives_the_whole_plan() -> None:
    found = plans(
        [*TWO, *updated(3, "1", status="in_progress"), *updated(4, "1", status="completed")]
    )

    assert found == [
        (PlanItem("Write it"),),
        (PlanItem("Write it"), PlanItem("Test it")),
        (PlanItem("Write it", NOW), PlanItem("Test it")),
        (PlanItem("Write it", DONE), PlanItem("Test it")),
    ]


@pytest.mark.requirement("claude-worker:stream:task-tools")
def test_a_task_can_be_renamed_and_deleted() -> None:
    found = plans([*TWO, *updated(3, "2", subject="Try it"), *updated(4, "1", status="deleted")])

    assert found[-1] == (PlanItem("Try it"),)


@pytest.mark.requirement("claude-worker:stream:task-refused")
def test_a_change_that_did_not_happen_changes_no_plan() -> None:
    failed = updated(3, "9", success=False, status="completed")
    refused = [call("TaskUpdate", 4, taskId="1", status="completed"), ended(4, "no", is_error=True)]

    assert plans([*TWO, *failed, *refused]) == plans(TWO)


@pytest.mark.requirement("claude-worker:stream:task-refused")
@pytest.mark.parametrize("is_error", [True, False])
def test_a_whole_plan_counts_when_its_tool_was_not_refused(*, is_error: bool) -> None:
    todos = [{"content": "x", "status": "completed"}]
    lines = [call("TodoWrite", 1, todos=todos), ended(1, {"newTodos": todos}, is_error=is_error)]

    assert plans(lines[:1]) == []
    assert plans(lines) == ([] if is_error else [(PlanItem("x", DONE),)])


@pytest.mark.requirement("claude-worker:stream:task-tools")
def test_what_the_program_returns_may_be_of_any_form() -> None:
    odd = [ended(1, each) for each in (None, "text", {"task": 3}, {"task": {"id": ""}})]
    for line in odd:
        assert json.loads(line)["type"] == "user"
        assert plans([call("TaskCreate", 1, subject="s"), line]) == []
