"""Recorded outputs of tools, and what the detectors make of them: docs/recorded-outputs.md.

    python -m scripts.alert_table [--check] [FILE]

writes the part between the page's two markers; with ``--check`` it changes nothing and exits with 1
when the page is out of date.

Every case is judged twice: with the exit code it was recorded with, and by its text alone, as when
a runtime does not tell the code.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
from scripts.marked_pages import cell, drawn_anew, update

from subagents.domain.run.values import Value
from subagents.domain.run.worker_output import ToolUse
from subagents.extensions.detectors.builds import result_of
from subagents.extensions.detectors.commits import commits_of
from subagents.text import counted

PAGE: Final = "docs/recorded-outputs.md"
FOLDER: Final = Path("tests/data/tool_outputs")
BEGIN: Final = "<!-- recorded outputs: written by `make docs` from tests/data/tool_outputs -->"
END: Final = "<!-- end of recorded outputs -->"
_COMMAND_CHARS: Final = 70


class Case(Value, frozen=True, forbid_unknown_fields=True):
    """One recorded output and what is true of it."""

    tool: str
    command: str
    recorded: str
    """``run``: by running it; ``documented``: written from the tool's documented format."""
    exit_code: int | None
    output: tuple[str, ...]
    """Lines."""
    passed: bool | None = None
    """Of a build: whether it passed; None = it never ran, or nobody can know."""
    errors: int | None = None
    """That a reader would count; None = they are not counted."""
    commits: tuple[str, ...] | None = None
    """Of a commit: the messages; None = the case is about a build."""
    note: str | None = None


class Judgement(Value, frozen=True):
    """What the detectors say of a case."""

    passed: bool | None = None
    errors: int | None = None
    commits: tuple[str, ...] = ()


def cases(folder: Path = FOLDER) -> dict[str, Case]:
    """Every case by its name.

    Raises:
        msgspec.ValidationError: A file is no case.
    """
    return {
        file.stem: msgspec.json.decode(file.read_bytes(), type=Case)
        for file in sorted(folder.glob("*.json"))
    }


def judged(case: Case, *, with_code: bool) -> Judgement:
    """What the detectors say, told the exit code or not."""
    code = case.exit_code if with_code else None
    tool = ToolUse(
        name="Bash",
        command=case.command,
        exit_code=code,
        is_error=code not in {None, 0},
        output="\n".join(case.output),
    )
    result = result_of(tool)
    commits = tuple(commits_of(tool))
    if result is None:
        return Judgement(commits=commits)
    return Judgement(passed=result.passed, errors=result.errors, commits=commits)


def miss_of(case: Case, judgement: Judgement) -> str | None:
    """``wrong``, ``missed`` or ``not counted``; None = the judgement is right."""
    if case.commits is not None:
        if judgement.passed is not None:
            return "wrong"
        if judgement.commits == case.commits:
            return None
        return "wrong" if judgement.commits else "missed"
    if judgement.commits or (judgement.passed is not None and judgement.passed is not case.passed):
        return "wrong"
    if judgement.passed is not case.passed:
        return "missed"
    if judgement.errors == case.errors:
        return None
    return "not counted" if judgement.errors is None else "wrong"


def misses(found: dict[str, Case]) -> dict[tuple[str, str], str]:
    """By case and way (``code``, ``text``): what is wrong; what is right is not in it."""
    return {
        (name, way): miss
        for name, case in found.items()
        for way in ways_of(case)
        if (miss := miss_of(case, judged(case, with_code=way == "code"))) is not None
    }


def ways_of(case: Case) -> tuple[str, ...]:
    return ("text",) if case.exit_code is None else ("code", "text")


def table(found: dict[str, Case]) -> str:
    """One row per case."""
    missed = misses(found)
    lines = ["| case | command | exit | true | with the code | by text alone |", "|" + "---|" * 6]
    for name, case in found.items():
        told = [
            missed.get((name, way), "✓") if way in ways_of(case) else "–"
            for way in ("code", "text")
        ]
        mark = "" if case.recorded == "run" else " *"
        code = "–" if case.exit_code is None else str(case.exit_code)
        lines.append(
            f"| {name}{mark} | {_shown(case.command)} | {code} | {_truth(case)} "
            f"| {told[0]} | {told[1]} |"
        )
    return "\n".join(lines)


def summary(found: dict[str, Case]) -> str:
    """How many cases there are, and how many are judged how."""
    missed = misses(found)
    run = sum(case.recorded == "run" for case in found.values())
    written = len(found) - run
    parts = [
        f"{len(found)} cases: {run} run, {written} written from documented formats (marked *)."
    ]
    for way, words in (("code", "With the exit code"), ("text", "By the text alone")):
        count = sum(way in ways_of(case) for case in found.values())
        mine = [miss for (_, each), miss in missed.items() if each == way]
        parts.append(
            f"{words}: {count} judged, {count - len(mine)} right, {mine.count('wrong')} wrong, "
            f"{mine.count('missed')} missed, "
            f"{mine.count('not counted')} without the number of errors."
        )
    return "\n".join(f"- {part}" for part in parts)


def drawn(page: str, found: dict[str, Case]) -> str:
    """``page`` with everything between its markers drawn anew.

    Raises:
        ValueError: A marker is missing.
    """
    return drawn_anew(page, BEGIN, END, summary(found), table(found))


def main(arguments: Sequence[str]) -> int:
    """``[--check] [FILE]``; returns the exit code."""
    return update(arguments, PAGE, lambda page: drawn(page, cases()))


def _truth(case: Case) -> str:
    if case.commits is not None:
        return counted(len(case.commits), "commit") if case.commits else "no commit"
    if case.passed is None:
        return "no result"
    if case.passed:
        return "passed"
    return "failed" if case.errors is None else f"failed, {case.errors}"


def _shown(command: str) -> str:
    line = " ".join(command.split()).replace("`", "'")
    short = line if len(line) <= _COMMAND_CHARS else f"{line[: _COMMAND_CHARS - 1]}…"
    return cell(f"`{short}`")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
