"""Python functions as workers, in processes of their own, under a real daemon."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.cli_home import Done, Home, temporary_home, until

from subagents.client.worker_process import found
from subagents.errors import UsageError

JOBS = """
from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from subagents import Unanswered, WorkerContext, worker


@dataclass
class Order:
    path: str
    limit: int = 10


@worker
def count(task: str) -> str:
    return f"{len(task.split())} words"

@worker
def take(order: Order, context: WorkerContext) -> dict[str, object]:
    print("half a line", end="")
    context.progress("reading", 50)
    context.report("read", confidence="low", artifacts={"a.txt": "notes"}, warnings=["old"])
    return {"path": order.path, "limit": order.limit, "umlaut": "ü", "attempt": context.attempt}

@worker
def level(name: Literal["low", "high"]) -> str:
    return f"level {name}"

@worker
async def ask(task: str, context: WorkerContext) -> str:
    answer = await context.ask_async(task, options=["main", "dev"], timeout=60)
    return f"{answer.decision}: {answer.answer}"

@worker
def impatient(task: str, context: WorkerContext) -> str:
    return context.ask(task, timeout="1s").answer or ""

@worker
def notify(task: str, context: WorkerContext) -> None:
    context.notify(task)
    context.usage(tokens_in=7)
    print("printed")

@worker
def broken(task: str, context: WorkerContext) -> str:
    if task == "once" and context.attempt > 1:
        return context.retry_reason
    raise ValueError(f"cannot read {task}\\nat all")

@worker
def two(task: str, other: str) -> str: ...

@worker
def long(task: str) -> str:
    return "x" * 1_100_000

@worker
async def hang(task: str) -> None:
    try:
        Path("hangs").touch()
        await asyncio.sleep(600)
    finally:
        Path(task).write_text("cleaned")

@worker
def block(task: str) -> None:
    try:
        Path("blocks").touch()
        time.sleep(600)
    finally:
        Path(task).write_text("cleaned")

def plain(task: str) -> str: ...
"""
NAMES = (
    *("count", "take", "level", "ask", "impatient", "notify", "broken", "two", "long", "hang"),
    *("block", "plain", "nobody"),
)
AGENTS = {name: f"jobs:{name}" for name in NAMES}
AGENTS |= {"astray": "jbos:count", "needy": "needy:count", "misspelt": "jobs.py"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A running daemon whose agents are the functions above."""
    with temporary_home(tmp_path_factory.mktemp("workers")) as home:
        (home.work / "jobs.py").write_text(JOBS)
        (home.work / "needy.py").write_text("import no_such_package\n")
        (home.work / "subagents.toml").write_text(
            "".join(
                f'[agents.{agent}]\nruntime = "command"\n'
                f'command = ["python", "-m", "subagents", "worker", "{path}"]\n'
                for agent, path in AGENTS.items()
            )
        )
        home.ok("up")
        yield home


def result(home: Home, agent: str, task: str, *flags: str) -> str:
    return home.ok("run", "--agent", agent, task, *flags).out.rstrip("\n")


def reason(home: Home, agent: str, task: str = "x") -> str:
    """Why its run ended with an error."""
    run = home.spawn(task, "--agent", agent)
    assert home.cli("wait", run).code == 5
    outcome = home.ok("show", run, "--json").json["outcome"]
    assert isinstance(outcome, dict)
    return f"{outcome['reason']}: {outcome['error']}"


@pytest.mark.requirement("python:worker")
def test_a_function_gets_the_task_and_its_text_is_the_result(place: Home) -> None:
    assert result(place, "count", "one two\nthree") == "3 words"


@pytest.mark.requirement("python:worker", "cli:worker-verbs")
def test_a_typed_task_is_validated_and_what_is_said_beside_it_is_on_record(place: Home) -> None:
    run = place.spawn('{"path": "a", "limit": 3}', "--agent", "take")
    (row,) = place.ok("wait", run, "--json").rows("completed")

    assert json.loads(row["result"]) == {"path": "a", "limit": 3, "umlaut": "ü", "attempt": 1}
    assert row["report"]["artifacts"] == [{"path": "a.txt", "description": "notes"}]
    assert (row["report"]["confidence"], row["report"]["warnings"]) == ("low", ["old"])
    assert "50% reading" in place.ok("show", run).out
    assert "half a line" in place.ok("log", run).out


@pytest.mark.requirement("python:worker")
def test_a_task_of_one_word_needs_no_quotes_of_json(place: Home) -> None:
    assert result(place, "level", "low") == "level low"
    assert "the task is no " in reason(place, "level", "middle")


@pytest.mark.requirement("python:worker")
def test_a_task_of_another_type_fails_with_the_field_that_is_wrong(place: Home) -> None:
    assert reason(place, "take", '{"path": "a", "limit": "many"}').startswith(
        "runtime_error: the task is no Order: Expected `int`, got `str` - at `$.limit`"
    )


@pytest.mark.requirement("python:worker")
def test_an_exception_is_the_short_reason_and_its_traceback_in_the_log(place: Home) -> None:
    assert reason(place, "broken", "it") == "runtime_error: ValueError: cannot read it at all"
    run = str(place.ok("list", "--agent", "broken", "--json").rows("runs")[0]["runId"])
    log = place.ok("log", run).out
    assert "jobs.py" in log
    assert "worker_process.py" not in log
    again = result(place, "broken", "once", "--retry", "1", "--retry-delay", "1ms")
    assert "cannot read once" in again


@pytest.mark.requirement("python:worker", "cli:answer")
def test_an_async_function_asks_and_gets_the_answer(place: Home) -> None:
    run = place.spawn("which branch?", "--agent", "ask")
    asked: list[str] = []

    def question() -> bool:
        items = place.ok("inbox", "--attention", "--json").rows("items")
        asked[:] = [str(each["requestId"]) for each in items if each["runId"] == run]
        return bool(asked)

    until(question, "the question")
    place.ok("answer", asked[0], "dev")

    assert place.ok("wait", run).out == "answer: dev\n"


@pytest.mark.requirement("python:worker")
def test_a_question_that_nobody_answers_fails_the_run_unless_it_is_caught(place: Home) -> None:
    assert reason(place, "impatient", "sure?") == "runtime_error: not answered in time: sure?"


@pytest.mark.requirement("python:worker")
def test_what_a_function_without_a_result_printed_is_its_result(place: Home) -> None:
    run = place.spawn("look here", "--agent", "notify")

    assert place.ok("wait", run).out == "printed\n"
    assert "look here" in place.ok("inbox", "--all").out
    assert '"tokensIn":7' in place.ok("show", run, "--json").out


@pytest.mark.requirement("python:worker")
@pytest.mark.parametrize(
    ("agent", "why"),
    [
        ("astray", "there is no module jbos for the worker jbos:count: not in the working direct"),
        ("needy", "ModuleNotFoundError: No module named 'no_such_package'"),
        ("misspelt", 'a worker is MODULE:FUNCTION, for example jobs:count_words, not "jobs.py"'),
        ("nobody", "module jobs has no function nobody; its workers: count, take, level"),
        ("plain", "module jobs does not decorate with @worker: plain"),
        ("two", "a worker takes one task, not task and other"),
        ("long", "1,100,"),
    ],
)
def test_what_cannot_be_a_worker_says_why(place: Home, agent: str, why: str) -> None:
    assert reason(place, agent).startswith(f"runtime_error: {why}")


@pytest.mark.requirement("python:worker")
@pytest.mark.parametrize("agent", ["hang", "block"])
def test_a_cancelled_function_runs_its_finally_blocks(place: Home, agent: str) -> None:
    run = place.spawn(f"{agent}.txt", "--agent", agent)
    until((place.work / f"{agent}s").exists, "the function runs")
    place.ok("cancel", run)
    place.cli("wait", run)

    assert (place.work / f"{agent}.txt").read_text() == "cleaned"


@pytest.mark.requirement("python:worker")
def test_a_function_is_tried_by_hand_without_a_daemon(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.work.mkdir()
    (home.work / "jobs.py").write_text(JOBS)

    assert home.ok("worker", "jobs:count", "two words").out == "2 words\n"
    failed = home.cli("worker", "jobs:broken", "it")
    assert (failed.code, failed.err.splitlines()[-2:]) == (
        1, ["ValueError: cannot read it", "at all"]
    )  # fmt: skip
    asked = home.cli("worker", "jobs:ask", "who?")
    assert asked.err.startswith("nobody can be asked or told: this worker has no run")
    alone = home.cli("worker", "jobs:count")
    assert (alone.code, "give a task to try it by hand" in alone.err) == (2, True)


@pytest.mark.requirement("python:worker")
def test_a_module_of_a_package_is_found_by_its_dotted_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop_of_tests").mkdir()
    (tmp_path / "shop_of_tests" / "orders.py").write_text(JOBS)
    monkeypatch.syspath_prepend(tmp_path)

    assert found("shop_of_tests.orders:count")("a b") == "2 words"
    with pytest.raises(UsageError, match=r"no module shop_of_tests\.nothing"):
        found("shop_of_tests.nothing:count")


TYPED = """
from collections.abc import Iterator
from datetime import date
from pathlib import Path

from subagents import worker

@worker
def place(task: Path) -> dict[str, Path]:
    return {"parent": task.parent}

@worker
def later(task: date | None) -> Iterator[date | None]:
    yield task

@worker
def whatever(task: object) -> object:
    return task

@worker
def number(task: complex) -> str: ...
"""
OF_PYDANTIC = """
from typing import Annotated

from pydantic import BaseModel, Field

from subagents import worker

class Order(BaseModel):
    lines: Annotated[int, Field(gt=0)]

@worker
def take(order: Order) -> Order:
    return order
"""


@pytest.mark.requirement("python:worker")
def test_a_task_is_of_any_type_that_has_a_form_in_json(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.work.mkdir()
    (home.work / "typed.py").write_text(TYPED)

    def tried(name: str, task: str) -> Done:
        # A new Python: in the tests' own somebody may have imported pydantic.
        return home.cli("worker", f"typed:{name}", task, env={"PYTHONPATH": str(home.work)})

    assert tried("place", "a/b").out == '{"parent":"a"}\n'
    assert tried("later", "2026-01-02").out == '["2026-01-02"]\n'
    assert tried("whatever", '{"a": [1]}').out == '{"a":[1]}\n'
    assert "the task is no complex: no value of the type complex" in tried("number", "1").err


@pytest.mark.requirement("python:worker")
def test_where_a_module_imports_pydantic_its_rules_hold(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.work.mkdir()
    (home.work / "strict.py").write_text(OF_PYDANTIC)

    assert home.ok("worker", "strict:take", '{"lines": 2}').out == '{"lines":2}\n'
    failed = home.cli("worker", "strict:take", '{"lines": 0}')
    assert "the task is no Order: lines: Input should be greater than 0" in failed.err
