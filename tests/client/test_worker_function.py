"""What a worker function is given, called as a user's test calls it."""

import pytest

from subagents import UsageError, WorkerContext, worker


@worker
def half(task: str, context: WorkerContext) -> str:
    context.progress("halving", percent=50)
    return task[: len(task) // 2]


@pytest.mark.requirement("python:worker")
def test_a_decorated_function_is_called_as_before(capsys: pytest.CaptureFixture[str]) -> None:
    assert half("abcd", WorkerContext("abcd")) == "ab"
    assert '"phase":"halving","percentComplete":50' in capsys.readouterr().out


@pytest.mark.requirement("python:worker")
def test_a_percentage_out_of_bounds_is_refused() -> None:
    with pytest.raises(UsageError, match="percent must be 0 to 100, not 150"):
        WorkerContext("x").progress("reading", 150)


@pytest.mark.requirement("python:worker")
def test_without_a_run_nobody_can_be_asked_or_told() -> None:
    with pytest.raises(UsageError, match="this worker has no run"):
        WorkerContext("x").ask("who?")
    with pytest.raises(UsageError, match="this worker has no run"):
        WorkerContext("x").notify("hello")


@pytest.mark.requirement("python:worker")
def test_a_process_that_is_no_worker_is_told_how_to_try_one() -> None:
    with pytest.raises(UsageError, match="SUBAGENTS_TASK_FILE is not set"):
        WorkerContext.of_run({})
