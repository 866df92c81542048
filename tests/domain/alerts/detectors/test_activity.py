"""What a worker is at."""

import pytest
from tests.domain.alerts.detectors.detector_inputs import context, plan, refused, see, text, used

from subagents.domain.run.worker_output import LineType, OutputItem


@pytest.mark.requirement("detectors:activity")
@pytest.mark.parametrize(
    ("said", "activity"),
    [
        (used("Edit", path="src/bridge.py"), "editing src/bridge.py"),
        (used("MultiEdit", path="/home/ada/app/src/bridge.py"), "editing src/bridge.py"),
        (used("Write", path="a.md"), "editing a.md"),
        (used("NotebookEdit", path="a.ipynb"), "editing a.ipynb"),
        (used("Read", path="src/a.py"), "reading src/a.py"),
        (used("Bash", command="cd /x && npm test 2>&1 | tail"), "running npm test"),
        (used("Bash", command="export A=1; cargo build"), "running cargo build"),
        (used("Grep", input="TODO"), "searching TODO"),
        (used("Glob", input="**/*.py"), "searching **/*.py"),
        (used("WebFetch", input="https://example.com"), "reading https://example.com"),
        (used("WebSearch", input="python"), "searching python"),
        (used("Task", agents=1), "starting a sub-agent"),
        (plan(("a", "pending")), "planning"),
        (used("apply_patch", path="a.rs"), "editing a.rs"),
        (used("shell", command="ls -la"), "running ls -la"),
        (used("exec_command", command="go test ./..."), "running go test ./..."),
        (used("run_shell_command", command="make"), "running make"),
        (used("replace", path="a.go"), "editing a.go"),
        (used("write_file", path="b.go"), "editing b.go"),
        (used("read_many_files"), "reading"),
        (used("mcp__orch__spawn"), "using mcp__orch__spawn"),
        (OutputItem(type=LineType.THINKING, text="hm"), "thinking"),
        (
            text("I will now rewrite the parser\nand more"),
            "writing: I will now rewrite the parser and more",
        ),
        (refused(), None),
        (context(5), None),
    ],
)
def test_the_last_activity_says_what_a_worker_is_at(said: OutputItem, activity: str | None) -> None:
    assert see(said)[0].last_activity == activity


@pytest.mark.requirement("detectors:activity")
def test_the_newest_piece_that_tells_of_it_is_the_activity() -> None:
    edit = used("Edit", path="a.py")

    assert see(text(), edit, refused(), context(5))[0].last_activity == "editing a.py"
    assert see(edit, text("done"))[0].last_activity == "writing: done"
    assert see(*[text("line")] * 3, used("Read"), text(" "))[0].last_activity == "reading"
