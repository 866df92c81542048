"""What an exit code says of the commands of a line, and where it is found."""

import pytest

from subagents.domain.run.worker_output import ToolUse
from subagents.extensions.detectors.exit_codes import all_passed, code_of, was_refused
from subagents.extensions.detectors.shell_programs import expanded


@pytest.mark.requirement("detectors:exit-codes")
@pytest.mark.parametrize(
    ("command", "code", "ends"),
    [
        ("a", 0, (True,)),
        ("a", 1, (False,)),
        ("a", None, (None,)),
        ("! a", 0, (False,)),
        ("a && b", 0, (True, True)),
        ("a && b", 1, (None, None)),
        ("cd x && a", 1, (True, False)),
        ("a; b", 0, (None, True)),
        ("a; b", 1, (None, False)),
        ("a\nb", 1, (None, False)),
        ("set -e; a; b", 0, (True, True, True)),
        ("set -e; a; b", 1, (True, None, None)),
        ("bash -ec 'a; b'", 0, (True, True, True)),
        ("a || true", 0, (None, None)),
        ("a || b", 1, (False, False)),
        ("a || exit 1", 0, (True, None)),
        ("a || exit 1", 1, (False, True)),
        ("a || exit 1; b", 0, (True, None, True)),
        ("a || b && c", 0, (None, None, True)),
        ("a | tail", 0, (None, True)),
        ("a | tail", 1, (None, None)),
        ("yes | a", 1, (None, False)),
        ("set -o pipefail; a | tail", 0, (True, True, True)),
        ("set -o pipefail; a | tail", 1, (True, False, True)),
        ("set -euo pipefail\na | tee x\nb", 0, (True, True, True, True)),
        ("bash -o pipefail -c 'a | tail'", 1, (True, False, True)),
        ("(a && b) | tail", 0, (None, None, True)),
        ("{ a; b; } 2>&1 | tail", 0, (None, None, True)),
        ("(a; b) && c", 0, (None, True, True)),
        ("a &", 0, (None,)),
        ("a & b", 0, (None, True)),
        ("if a; then b; fi", 0, (None, None)),
        ("for x in 1 2; do a; done", 0, (None,)),
        ("a; echo done", 0, (None, True)),
        ("! a && b", 1, (None, None)),
        ("set -e; a & b", 0, (True, None, True)),
        ("a && b || c", 1, (None, None, False)),
        ("a && exit 1; b", 0, (False, None, True)),
    ],
)
def test_an_exit_code_is_read_back_onto_the_commands_it_speaks_for(
    command: str, code: int | None, ends: tuple[bool | None, ...]
) -> None:
    steps = expanded(command)

    assert tuple(all_passed(steps, {n}, code, "") for n in range(len(steps))) == ends


@pytest.mark.requirement("detectors:exit-codes")
@pytest.mark.parametrize(
    ("command", "code", "passed"),
    [
        ("a && b", 0, True),
        ("a && b", 1, False),
        ("a && c", 1, None),
        ("cd x && a && b", 1, False),
        ("a; b", 0, None),
        ("a || b", 1, False),
        ("set -e; a; b", 1, False),
        ("set -e; a; c; b", 1, None),
    ],
)
def test_of_several_commands_one_failed_also_where_nobody_can_say_which(
    command: str, code: int, *, passed: bool | None
) -> None:
    steps = expanded(command)
    asked = {number for number, step in enumerate(steps) if step.words[0] in {"a", "b"}}

    assert all_passed(steps, asked, code, "") is passed


@pytest.mark.requirement("detectors:exit-codes")
@pytest.mark.parametrize(
    ("output", "is_error", "code"),
    [
        ("Exit code 2\nmake: *** Error", True, 2),
        ("make: *** Error", True, 1),
        ("Command: make\nOutput: x\nExit Code: 2\nSignal: (none)", False, 2),
        ("Chunk ID: a\nWall time: 1 s\nProcess exited with code 101\nOutput:", False, 101),
        ("the docs say:\nExit code 2", False, None),
        ("all fine", False, None),
    ],
)
def test_a_code_in_the_output_is_found_where_programs_write_it(
    *, output: str, is_error: bool, code: int | None
) -> None:
    tool = ToolUse(name="Bash", command="make", output=output, is_error=is_error)

    assert code_of(tool) == code


@pytest.mark.requirement("detectors:exit-codes")
@pytest.mark.parametrize(
    "refusal",
    [
        "This command requires approval",
        "Permission to use Bash with command make has been denied.",
        "The user doesn't want to proceed with this tool use.",
        "PreToolUse:Bash hook error: no builds on Friday",
    ],
)
def test_a_command_that_was_not_allowed_to_run_is_known_by_what_it_says(refusal: str) -> None:
    tool = ToolUse(name="Bash", command="make", output=refusal, is_error=True)

    assert was_refused(tool)
    assert not was_refused(ToolUse(name="Bash", command="make", output="boom", is_error=True))
