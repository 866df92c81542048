"""Results of builds, tests, linters and type checkers that a worker ran in a shell.

First the command line says what was run and whether the exit code speaks for it
(``build_tools``, ``exit_codes``); where it does not, the output has to (``result_lines``). Where
neither does nothing is reported: a wrong result is worse than none.
"""

import itertools
import re
from collections.abc import Sequence
from typing import Final

from subagents.domain.alerts.detectors.alert_wording import shown, shown_path
from subagents.domain.alerts.detectors.findings import BuildResult
from subagents.domain.alerts.detectors.shell import Step
from subagents.domain.run.worker_output import ToolUse
from subagents.extensions.detectors.build_tools import Build, BuildKind, build_of
from subagents.extensions.detectors.exit_codes import (
    all_passed,
    code_of,
    was_refused,
)
from subagents.extensions.detectors.result_lines import Kept, Summary, summary_of
from subagents.extensions.detectors.shell_programs import expanded
from subagents.text import counted

_TIMED_OUT: Final = 124
_COMMAND_CHARS: Final = 120
_SILENT: Final = frozenset(
    {"tsc", "vue-tsc", "flake8", "pyflakes", "pycodestyle", "eslint", "gcc", "g++", "cc", "c++"}
    | {"clang", "clang++", "rustc", "javac", "go", "isort", "shellcheck", "py_compile", "node"}
    | {"compileall", "bash", "cargo", "kotlinc", "yamllint", "stylelint", "hadolint", "bandit"}
    | {"rustfmt", "shfmt", "clang-format", "vulture", "actionlint", "gfortran"}
)
"""They print nothing when all is well."""
_PASS_ON: Final = frozenset({"cat", "tee", "ts", "nl", "less", "more"})
_NO_FOLDER: Final = re.compile(
    r"^[^\n]{0,80}\b(?:cd|pushd): [^\n]{1,300}(?:No such file|Not a directory|not found)"
    r"|^[^\n]{0,80}\bcd: no such file|^cd: The directory ",
    re.MULTILINE,
)
_FOLDER_CHARS: Final = 2_000
_GOES_ON: Final = ("Process running with session ID", "Command running in background with ID")


def result_of(tool: ToolUse) -> BuildResult | None:
    """How the build that a tool ran ended; None = it ran none, or nothing tells how it ended."""
    if not tool.is_end or tool.command is None or was_refused(tool):
        return None
    steps = expanded(tool.command)
    builds = {n: found for n, step in enumerate(steps) if (found := build_of(step)) is not None}
    if not builds:
        return None
    code = code_of(tool)
    works = {each.work for each in builds.values()}
    kept = [_kept(steps, number) for number in builds]
    summary = summary_of(
        _of_builds(steps, tool.output),
        is_test=works == {BuildKind.TEST},
        has_test=BuildKind.TEST in works,
        kept=max(kept),
    )
    if summary.passed and sum(each > Kept.ALL for each in kept) > 1:
        summary = Summary()  # what is left may be of one of them
    passed = _verdict(steps, builds, summary, tool, code)
    if passed is None:
        return None
    work = works.pop() if len(works) == 1 else BuildKind.CHECK
    families = dict.fromkeys(each.family for each in builds.values())
    return BuildResult(
        work=work,
        family=" + ".join(families),
        command=_command([steps[number] for number in builds]),
        passed=passed,
        errors=0 if passed else summary.errors,
        tests=summary.tests if passed else None,
        summary=_problem(work, summary, code) if not passed else "",
    )


def _verdict(
    steps: Sequence[Step],
    builds: dict[int, Build],
    summary: Summary,
    tool: ToolUse,
    code: int | None,
) -> bool | None:
    """The exit code first, the output second."""
    if any(mark in tool.output for mark in _GOES_ON) or not _came_to_it(steps, tool.output):
        return None
    passed = all_passed(steps, builds.keys(), code, tool.output)
    if passed is None:
        passed = summary.passed
    if passed is None and all(
        _would_have_said(steps[number], each.tool, tool.output) for number, each in builds.items()
    ):
        return True
    return passed


def _kept(steps: Sequence[Step], number: int) -> Kept:
    """How much of what a build prints is in the line's output."""
    kept = Kept.END if steps[number].is_hidden else Kept.ALL
    behind = steps[number + 1 :] if steps[number].is_piped else ()
    # The programs that read its group stand behind all of the group.
    readers = itertools.dropwhile(lambda each: each.joined != "|", behind)
    for step in itertools.takewhile(lambda each: each.joined == "|", readers):
        if step.words[0] not in _PASS_ON:
            kept = max(kept, Kept.END if step.words[0] == "tail" else Kept.SOME)
    return kept


def _of_builds(steps: Sequence[Step], output: str) -> str:
    """The output without what the line says itself, however its builds ended."""
    said = {
        " ".join(step.words[1:]).strip()
        for step in steps
        if step.words[0] == "echo" and step.joined in {"", ";", "&"} and not step.is_maybe
    }
    lines = output.split("\n")
    return "\n".join(line for line in lines if line.strip() not in said) if said else output


def _would_have_said(step: Step, program: str, output: str) -> bool:
    """Whether an empty output is a success: all of it is here, and a failure prints something.

    Behind a pipe or in a file the failure may be; in a loop or a condition the program may not have
    run at all.
    """
    is_whole = not (step.is_hidden or step.is_beside or step.is_piped or step.is_maybe)
    return is_whole and program in _SILENT and not output.strip()


def _came_to_it(steps: Sequence[Step], output: str) -> bool:
    """Whether the line came as far as its builds: ``cd nowhere && make`` did not."""
    if not any(step.words[0] in {"cd", "pushd"} for step in steps):
        return True
    return _NO_FOLDER.search(output[:_FOLDER_CHARS]) is None


def _command(steps: Sequence[Step]) -> str:
    return shown(" && ".join(" ".join(step.words) for step in steps), _COMMAND_CHARS)


def _problem(work: BuildKind, summary: Summary, code: int | None) -> str:
    """What is wrong, as far as it is known."""
    if summary.passed is False and summary.errors is not None:
        what = counted(summary.errors, "failure" if work is BuildKind.TEST else "error")
        if len(summary.places) == 1:
            return f"{what} in {shown_path(summary.places[0])}"
        return f"{what} in {len(summary.places)} files" if summary.places else what
    if code == _TIMED_OUT:
        return "timed out"
    if summary.passed is False and summary.line:
        return shown(summary.line)
    return f"exit code {code}" if code else ""
