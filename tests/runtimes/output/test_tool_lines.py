"""A tool that was used: what is known of it, and the line that tells of it."""

import pytest

from subagents.domain.run.worker_output import OUTPUT_CHARS_MAX, PlanItem, PlanStatus
from subagents.runtimes.output.tool_lines import SHORT_CHARS_MAX, tool_line, tool_use


@pytest.mark.requirement("transcript:tool-lines")
def test_an_ended_tool_reads_as_its_mark_its_time_and_its_command() -> None:
    """A tool, how long it took, and its command: ``✅ Bash (2.1s)``."""
    tool = tool_use("Bash", given={"command": "cd /x && git log"}, exit_code=0, duration_ms=2_100)

    assert tool_line(tool) == "✅ Bash (2.1s)\ncd /x && git log"
    assert (tool.command, tool.exit_code, tool.is_error) == ("cd /x && git log", 0, False)


@pytest.mark.requirement("transcript:tool-lines")
@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"exit_code": 1, "duration_ms": 300}, "❌ Bash (0.3s, exit 1)"),
        ({"exit_code": 2}, "❌ Bash (exit 2)"),
        ({"is_error": True}, "❌ Bash"),
        ({"is_end": False}, "▶ Bash"),
        ({"duration_ms": 125_000}, "✅ Bash (2m 5s)"),
        ({"returned": "collected\n\x1b[32m12 passed\x1b[0m in 0.3s\n\n"}, None),
        ({"returned": [{"type": "text", "text": "12 passed in 0.3s"}]}, None),
        ({"returned": "  \n"}, "✅ Bash"),
    ],
)
def test_a_tool_line_says_how_it_ended_and_what_came_out(
    fields: dict[str, object], line: str | None
) -> None:
    expected = "✅ Bash\n→ 12 passed in 0.3s" if line is None else line
    assert tool_line(tool_use("Bash", **fields)) == expected  # type: ignore[arg-type]  # a table


@pytest.mark.requirement("transcript:tool-lines")
def test_a_tool_that_began_and_never_ended_can_be_seen() -> None:
    tool = tool_use("Bash", given={"command": "sleep 999"}, call_id="c1", is_end=False)

    assert tool_line(tool) == "▶ Bash\nsleep 999"
    assert (tool.call_id, tool.is_end) == ("c1", False)


@pytest.mark.requirement("transcript:tool-inputs")
@pytest.mark.parametrize("name", ["Bash", "shell", "exec_command", "run_terminal_cmd", "local_sh"])
@pytest.mark.parametrize(
    "given",
    [
        {"command": "make test"},
        {"cmd": "make test"},
        {"command": ["make", "test"]},
        {"command": ["bash", "-lc", "make test"]},
        '{"command":"make test"}',
        "make test",
    ],
    ids=str,
)
def test_the_command_of_a_shell_tool_is_known_however_it_is_given(name: str, given: object) -> None:
    tool = tool_use(name, given=given)
    assert (tool.command, tool.input, tool.path) == ("make test", "make test", None)


@pytest.mark.requirement("transcript:tool-inputs")
@pytest.mark.parametrize(
    ("name", "given", "path", "short"),
    [
        ("Edit", {"file_path": "src/a.py", "old_string": "x"}, "src/a.py", "src/a.py"),
        ("str_replace_editor", {"command": "view", "path": "/b"}, "/b", "/b"),
        ("NotebookEdit", {"notebook_path": "n.ipynb"}, "n.ipynb", "n.ipynb"),
        ("Grep", {"pattern": "def  \n x"}, None, "def x"),
        ("WebFetch", {"url": "https://x", "prompt": "sum up"}, None, "https://x"),
        ("odd", {"a": 1, "b": [2]}, None, '{"a":1,"b":[2]}'),
        ("odd", [1, 2], None, "[1,2]"),
        ("odd", {}, None, ""),
        ("odd", "{not json", None, "{not json"),
    ],
)
def test_a_file_or_the_telling_part_of_the_input_is_known(
    name: str, given: object, path: str | None, short: str
) -> None:
    tool = tool_use(name, given=given)
    assert (tool.path, tool.input, tool.command) == (path, short, None)


@pytest.mark.requirement("transcript:tool-inputs")
def test_a_plan_is_known_with_what_is_done_and_what_is_next() -> None:
    plan = (
        PlanItem(text="Read specs", status=PlanStatus.COMPLETED),
        PlanItem(text="Write code", status=PlanStatus.IN_PROGRESS),
        PlanItem(text="Ship"),
    )
    todo = tool_use(
        "TodoWrite",
        given={
            "todos": [
                {"content": "Read specs", "status": "completed"},
                {"content": "Write code", "status": "in_progress"},
                {"content": "Ship", "status": "pending"},
            ]
        },
    )
    update = tool_use(
        "update_plan",
        given={
            "plan": [
                {"step": "Read specs", "status": "done"},
                {"step": "Write code", "status": "in-progress"},
                "Ship",
                {"step": ""},
                7,
            ]
        },
    )

    assert todo.plan == update.plan == plan
    assert tool_line(todo) == "✅ TodoWrite\n1/3 done, now: Write code"
    assert tool_use("TodoWrite", given={"todos": []}).plan == ()
    assert tool_use("list_items", given={"items": [{"text": "no plan"}]}).plan is None


@pytest.mark.requirement("transcript:tool-inputs")
@pytest.mark.parametrize(
    ("name", "given", "agents", "team"),
    [
        ("Task", {"description": "look", "prompt": "…"}, 1, None),
        ("Agent", {"team_name": "refactor-squad"}, 1, "refactor-squad"),
        ("dispatch_agent", {"agents": 3, "team": "t"}, 3, "t"),
        ("Task", {"agents": ["a", "b"]}, 2, None),
        ("Task", {"agents": 0}, 1, None),
        ("Bash", {"command": "x", "agents": 3, "team": "t"}, 0, None),
    ],
)
def test_sub_agents_of_the_programs_own_are_counted(
    name: str, given: object, agents: int, team: str | None
) -> None:
    tool = tool_use(name, given=given)
    assert (tool.agents, tool.team) == (agents, team)


@pytest.mark.requirement("transcript:tool-inputs")
def test_whatever_a_program_hands_over_is_bounded() -> None:
    tool = tool_use(
        "Bash" * 1_000,
        given={"command": "echo " + "x" * 1_000_000},
        returned="first\n" + "y" * 1_000_000 + "\nlast",
        call_id="i" * 1_000,
    )

    assert len(tool.output) <= OUTPUT_CHARS_MAX
    assert tool.output.startswith("first\n")
    assert tool.output.endswith("\nlast")
    assert len(tool.input) == SHORT_CHARS_MAX
    assert len(tool_line(tool)) <= 3 * SHORT_CHARS_MAX + 20
    assert tool.command is not None
    assert len(tool.command) <= 4_000
    deep: object = "x"
    for _ in range(200):
        deep = [deep]
    assert len(tool_use("odd", given=deep).input) <= SHORT_CHARS_MAX
