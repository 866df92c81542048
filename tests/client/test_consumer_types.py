"""What a user's type checker says about programs that use the package, strictly checked."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pytest
from tests.page_blocks import blocks

ROOT: Final = Path(__file__).parents[2]
PROGRAM: Final = """\
from subagents import Orchestrator, PlanRun, Subagents


async def work(sub: Orchestrator) -> str:
    await sub.spawn("x", retry_cuont=2)  # refused
    await sub.spawn("x", label=3)  # refused
    await sub.spawn("x", retry_backoff="never")  # refused
    await sub.spawn("x", retry_delay=1000)  # refused
    await sub.spawn("x", retry_delay="1s", timeout=90, budget={"max_seconds": "1h"})
    await sub.spawn("x", budget={"max_tokns": 5})  # refused
    await sub.spawn("x", verification={"artifacts": [{"path": "a.json", "min_items": 1}]})
    await sub.plan([{"task": "x", "agent": "command", "depends_on": ["y"]}])
    await sub.plan([{"task": "x", "retry_cuont": 2}])  # refused
    steps: list[PlanRun] = [{"task": "x", "timeout": "5m"}]
    await sub.plan(steps)
    done = await sub.run("x", check=True)
    if done.outcome.status == "okay":  # refused
        return ""
    if done.phase == "runing":  # refused
        return ""
    match done.outcome.status:
        case "ok" | "partial":
            return done.result or ""
        case "error" | "timeout":
            return done.outcome.reason or ""
        case _:
            return "cancelled, lost, or a newer daemon's word"


def without_a_loop() -> int | None:
    with Subagents.connect() as sub:
        sub.spawn("x", retry_cuont=2)  # refused
        sub.run("x", label=3)  # refused
        run = sub.spawn("make test", agent="command", timeout="5m", retry=2)
        return run.wait().outcome.statsu  # refused
"""


def mypy(program: Path) -> tuple[Sequence[str], str]:
    cache = ROOT / ".mypy_cache" / "consumers"
    return [
        *(sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--config-file="),
        *("--hide-error-context", f"--cache-dir={cache}", str(program)),
    ], r":(\d+): error: "


def pyright(program: Path) -> tuple[Sequence[str], str]:
    config = program.with_name("pyrightconfig.json")
    config.write_text(json.dumps({"include": [program.name], "typeCheckingMode": "strict"}))
    command = [sys.executable, "-m", "basedpyright", "-p", str(config)]
    return [*command, "--pythonpath", sys.executable], r":(\d+):\d+ - error: "


Checker = Callable[[Path], tuple[Sequence[str], str]]


def complaints(checker: Checker, program: Path) -> tuple[set[int], str]:
    """The lines that it refuses, and all that it said."""
    command, line = checker(program)
    environ = {name: text for name, text in os.environ.items() if name != "MYPYPATH"}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=program.parent, env=environ
    )
    said = done.stdout + done.stderr
    return {int(each) for each in re.findall(line, said)}, said


@pytest.mark.requirement("python:typed", "python:typed-answers")
@pytest.mark.parametrize("checker", [mypy, pyright])
def test_a_users_type_checker_refuses_what_is_wrong_and_nothing_else(
    checker: Checker, tmp_path: Path
) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    wrong = {n for n, text in enumerate(PROGRAM.splitlines(), 1) if text.endswith("# refused")}

    found, said = complaints(checker, program)

    assert found == wrong, said


@pytest.mark.requirement("python:typed")
def test_pyright_accepts_every_typed_use_that_mypy_accepts(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text((ROOT / "tests" / "typing_api.py").read_text())

    found, said = complaints(pyright, program)

    assert found == set(), said
    assert "0 errors" in said


@pytest.mark.requirement("docs:typed", "python:typed")
@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "docs/events.md",
        "docs/howto/a2a.md",
        "docs/howto/python-workers.md",
        "docs/howto/schedules.md",
        "docs/reference/python.md",
    ],
)
def test_the_programs_of_a_page_pass_a_strict_type_checker(tmp_path: Path, page: str) -> None:
    programs = [each.body for each in blocks(ROOT / page) if each.language == "python"]
    assert programs
    for number, text in enumerate(programs):
        program = tmp_path / f"program_{number}.py"
        program.write_text(text)
        found, said = complaints(mypy, program)
        assert found == set(), said
