"""Help pages as people see them, at the widths of their terminals."""

import pytest

from subagents.cli.command_table import commands
from subagents.cli.help_page import WIDTH_MAX, filled
from subagents.cli.main import main
from subagents.domain.run.parameter import SECTIONS
from subagents.errors import EXIT_OK

NAMES = [each.name for each in commands()]


def page(name: str, capsys: pytest.CaptureFixture[str], *, flag: str = "--help") -> list[str]:
    assert main([*name.split(), flag]) == EXIT_OK
    return capsys.readouterr().out.splitlines()


@pytest.mark.requirement("cli:help")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("columns", [80, 200])
def test_no_line_of_help_is_wider_than_the_terminal(
    name: str,
    columns: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = page(name, capsys, flag="--help-all")
    # An example is a line to copy, and stays one.
    text = [line for line in lines if "    subagents " not in line]
    assert max(map(len, text)) <= min(columns, WIDTH_MAX)


@pytest.mark.requirement("cli:help")
@pytest.mark.parametrize("name", ["run", "spawn"])
def test_the_flags_of_a_spawn_are_grouped_in_the_order_of_their_sections(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = page(name, capsys, flag="--help-all")
    titles = [line[:-1] for line in lines if line[:1].strip() and line[-1] == ":"]
    assert titles == ["For example", "Arguments", "Options", *SECTIONS]


@pytest.mark.requirement("cli:help")
def test_usage_names_what_a_command_takes(capsys: pytest.CaptureFixture[str]) -> None:
    usage = {name: page(name, capsys)[0] for name in NAMES}
    assert usage["run"] == "Usage: subagents run [OPTIONS] TASK"
    assert usage["cancel"] == "Usage: subagents cancel [OPTIONS] RUN..."
    assert usage["wait"] == "Usage: subagents wait [OPTIONS] [RUN...]"
    assert not [line for line in usage.values() if "ARGS" in line]


@pytest.mark.requirement("cli:help")
def test_a_paragraph_is_filled_and_an_example_is_not() -> None:
    words = "one two\nthree four five"
    assert filled(words, 14) == "one two three\nfour five"
    assert filled("    one two three four", 9) == "    one two three four"
