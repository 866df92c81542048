"""On a terminal: a live tree, questions of the command itself, and no colours where unwanted."""

import os
import pty
import re
import sys
from collections.abc import Mapping

import pytest
from tests.cli.cli_home import Home
from tests.cli.terminal import terminal

from subagents.api.wire.run_answers import RunStatus
from subagents.cli.output import cells_wide
from subagents.cli.show.live_screen import LiveTable, LiveTrees
from subagents.cli.show.watch_frame import Frame
from subagents.text import iso


def on_terminal(
    home: Home, *argv: str, typed: str = "", env: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """Run one command on a pseudo-terminal; returns its exit code and all that was shown."""
    with terminal(home, *argv, env=env or {}) as found:
        found.type(typed)
        return found.code(), found.shown


@pytest.mark.requirement("cli:live-tree")
def test_a_run_is_drawn_live_and_ends_with_its_result_and_summary(shared: Home) -> None:
    code, shown = on_terminal(shared, "run", "sleep 1; echo the result", "--label", "drawn")
    assert code == 0
    assert "▶" in shown
    assert "working" in shown
    assert shown.count("the result") == 1
    assert "drawn: ok" in shown.splitlines()[-1]


@pytest.mark.requirement("cli:narrow-terminals")
@pytest.mark.parametrize(
    ("columns", "headers"),
    [
        (40, "RUN STATE LABEL"),
        (60, "RUN STATE LABEL AGE NOW"),
        (80, "RUN STATE LABEL AGENT TIME AGE NOW"),
    ],
)
def test_on_a_narrow_terminal_what_tells_a_run_is_whole_and_the_rest_gives_way(
    shared: Home, columns: int, headers: str
) -> None:
    label = f"a label {columns} that is far longer than any narrow terminal has room for"
    run_id = shared.spawn("exit 3", "--label", label)
    shared.cli("wait", run_id)
    _, shown = on_terminal(shared, "list", env={"COLUMNS": str(columns), "NO_COLOR": "1"})

    (row,) = [line for line in shown.splitlines() if f"a label {columns}" in line]
    assert row.split()[:2] == [run_id, "failed"]
    assert shown.splitlines()[0].split() == headers.split()
    assert max(map(len, shown.splitlines())) <= columns


@pytest.mark.requirement("cli:colour")
def test_colours_appear_on_a_terminal_and_not_with_no_color(shared: Home) -> None:
    shared.ok("run", "echo x", "--label", "coloured")
    _, coloured = on_terminal(shared, "list", "--now", "coloured")
    assert "\x1b[32m✔\x1b[0m" in coloured
    for line in ("status coloured", "tree coloured", "list"):
        _, plain = on_terminal(shared, *line.split(), env={"NO_COLOR": "1"})
        assert "coloured" in plain
        assert "\x1b[3" not in plain


@pytest.mark.requirement("cli:harmless")
def test_a_result_cannot_clear_the_screen_but_a_pipe_gets_it_as_it_is(shared: Home) -> None:
    task = r"printf 'a\033[2Jb\n'"
    _, shown = on_terminal(shared, "run", task, "--label", "evil")
    assert "\x1b[2J" not in shown
    assert "ab" in shown
    assert shared.ok("result", "evil").out == "a\x1b[2Jb\n"


@pytest.mark.requirement("watch:rows")
def test_each_frame_is_drawn_over_the_one_before_and_no_line_is_wider_than_the_screen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours, theirs = pty.openpty()
    rows = [
        RunStatus(
            run_id=name,
            label=name,
            agent_id="worker",
            phase="queued",
            why="日本語 " * 20,
            created_at=iso(1),
        )
        for name in ("first", "second")
    ]
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("LINES", "24")
    with os.fdopen(theirs, "w") as screen:
        monkeypatch.setattr(sys, "stdout", screen)
        monkeypatch.setattr(sys, "stderr", screen)
        with LiveTable() as table:
            table.show(Frame(rows, []))
            table.show(Frame(rows[:1], []))
        with LiveTrees() as trees:
            trees.show_line("one line about more runs than a screen has lines for them")
            trees.note("said above")
        found = b""
        while found.count(b"\x1b[?25h") < 2:
            found += os.read(ours, 65536)
    shown = found.decode().replace("\r\n", "\n")
    os.close(ours)

    _, first, second, line, _ = re.split(r"(?:\x1b\[\d+A)?\r", shown)
    assert "\x1b[4A\r" in shown
    assert (first.count("\n"), second.count("\n")) == (4, 3)
    lines = re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", first + second + line).split("\n")
    assert max(map(cells_wide, lines)) <= 40
    assert "\x1b[1A\r\x1b[Jsaid above\none line about" in shown
