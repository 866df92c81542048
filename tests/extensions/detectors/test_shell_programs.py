"""Which program a command runs, behind whatever stands before it."""

import pytest

from subagents.domain.alerts.detectors.shell import steps_of
from subagents.extensions.detectors.shell_programs import program_of


@pytest.mark.requirement("detectors:commands")
@pytest.mark.parametrize(
    ("command", "program"),
    [
        ("sudo -u ada -E env A=1 timeout -k 5 60 nice -n 5 make all", ("make", "all")),
        ("python3.11 -X dev -m pytest -q", ("pytest", "-q")),
        ("uv run --with x --python 3.12 -- mypy .", ("mypy", ".")),
        ("docker run --rm -v a:b -w /x img make", ("make",)),
        ("npx -y -p typescript tsc -b", ("tsc", "-b")),
        ("/usr/bin/make", ("make",)),
        ("./gradlew test", ("gradle", "test")),
        ("bash -x ci/test.sh fast", ("./test.sh", "fast")),
        ("python setup.py test", ("./setup.py", "test")),
        ("command -v make", ()),
        ("sudo", ()),
        ("sudo -u", ()),
        ("env", ()),
    ],
)
def test_a_program_is_found_behind_what_stands_before_it(
    command: str, program: tuple[str, ...]
) -> None:
    (step,) = steps_of(command)

    assert program_of(step.words) == program
