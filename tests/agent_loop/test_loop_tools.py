"""The worker's own tools: what they do, and what they refuse."""

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from subagents.agent_loop import file_tools as files
from subagents.agent_loop import search_tool as search
from subagents.agent_loop.loop_tools import Tool, own_tools
from subagents.agent_loop.path_bounds import Bounds, Refused
from subagents.agent_loop.shell_tool import (
    HEAD_BYTES,
    MARK,
    TAIL_BYTES,
    Ran,
    Shell,
)
from subagents.runtimes.llm.llm_assignment import OWN_TOOLS

BOUND_S = 20.0


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A working directory beside something that is none of the worker's business."""
    (tmp_path / "secret.txt").write_text("not yours")
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("one\ntwo\nthree\n")
    (work / "out").symlink_to(tmp_path)
    (work / "link.txt").symlink_to(tmp_path / "secret.txt")
    (work / "inside.txt").symlink_to(work / "a.txt")
    return work


@pytest.fixture
def bounds(work: Path) -> Bounds:
    return Bounds(str(work))


def tool(bounds: Bounds, name: str) -> Tool:
    return own_tools([name], bounds, Shell(str(bounds.root), ()), shell_timeout_s=5)[0]


def call(bounds: Bounds, name: str, **arguments: object) -> str:
    """What a tool says, or refuses with."""
    try:
        return asyncio.run(_run(tool(bounds, name), arguments))
    except Refused as refusal:
        return f"refused: {refusal}"


async def _run(made: Tool, arguments: dict[str, object]) -> str:
    return (await made.run(arguments, "c1")).text


OUTSIDE: dict[str, Callable[[Bounds, str], str]] = {
    "read": lambda bounds, path: call(bounds, "read", path=path),
    "write": lambda bounds, path: call(bounds, "write", path=path, content="x"),
    "edit": lambda bounds, path: call(bounds, "edit", path=path, old="not", new="x"),
    "grep": lambda bounds, path: call(bounds, "grep", pattern="yours", path=path),
}


@pytest.mark.requirement("llm:tools:bounds")
@pytest.mark.parametrize("name", OUTSIDE)
@pytest.mark.parametrize(
    "path",
    ["../secret.txt", "out/secret.txt", "link.txt", "a/../../secret.txt", "{root}/secret.txt"],
)
def test_no_tool_leaves_the_working_directory_by_dots_links_or_whole_paths(
    bounds: Bounds, work: Path, name: str, path: str
) -> None:
    said = OUTSIDE[name](bounds, path.format(root=work.parent))
    assert "is outside of the working directory" in said
    assert "not yours" not in said
    assert (work.parent / "secret.txt").read_text() == "not yours"


@pytest.mark.requirement("llm:tools:bounds")
def test_a_new_file_is_not_written_through_a_link_that_leads_out(
    bounds: Bounds, work: Path
) -> None:
    assert "outside" in call(bounds, "write", path="out/new.txt", content="x")
    (work / "dangling").symlink_to(work.parent / "made.txt")
    assert "outside" in call(bounds, "write", path="dangling", content="x")
    assert not (work.parent / "new.txt").exists()
    assert not (work.parent / "made.txt").exists()


@pytest.mark.requirement("llm:tools:bounds")
def test_a_search_and_a_listing_do_not_follow_links_out(bounds: Bounds) -> None:
    assert call(bounds, "grep", pattern="yours") == "(no match)"
    assert "secret.txt (" not in call(bounds, "list", recursive=True)


@pytest.mark.requirement("llm:tools:bounds")
def test_a_link_within_the_working_directory_is_the_file_it_names(bounds: Bounds) -> None:
    assert call(bounds, "read", path="inside.txt").startswith("1\tone")


@pytest.mark.requirement("llm:tools:read")
def test_reading_numbers_the_lines_and_says_how_to_go_on(bounds: Bounds, work: Path) -> None:
    assert call(bounds, "read", path="a.txt", offset=2, limit=1) == (
        "2\ttwo\n[1 more lines; go on with offset=3]"
    )
    (work / "long.txt").write_text("\n".join(f"line {n}" for n in range(5_000)))
    said = call(bounds, "read", path="long.txt")
    assert said.endswith(f"go on with offset={files.READ_LINES_MAX + 1}]")


@pytest.mark.requirement("llm:tools:read")
@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("missing", "there is no missing"),
        (".", "is a directory; list it"),
        ("binary", "is not text"),
        ("fifo", "is no regular file"),
    ],
)
def test_what_cannot_be_read_as_text_is_refused_at_once(
    bounds: Bounds, work: Path, path: str, said: str
) -> None:
    (work / "binary").write_bytes(b"\x7fELF\0\0")
    os.mkfifo(work / "fifo")
    assert said in call(bounds, "read", path=path)


@pytest.mark.requirement("llm:tools:write")
def test_writing_makes_directories_and_keeps_the_permissions_of_what_it_replaces(
    bounds: Bounds, work: Path
) -> None:
    assert call(bounds, "write", path="b/c.sh", content="echo 1") == "b/c.sh: 6 bytes written"
    (work / "b/c.sh").chmod(0o755)
    call(bounds, "write", path="b/c.sh", content="echo 2")
    assert (work / "b/c.sh").read_text() == "echo 2"
    assert (work / "b/c.sh").stat().st_mode & 0o777 == 0o755
    assert [each.name for each in (work / "b").iterdir()] == ["c.sh"]


@pytest.mark.requirement("llm:tools:edit")
def test_an_edit_replaces_what_is_there_once_and_refuses_what_is_not_or_is_twice(
    bounds: Bounds, work: Path
) -> None:
    assert call(bounds, "edit", path="a.txt", old="two", new="2") == "a.txt: 1 replaced"
    assert "does not hold that text" in call(bounds, "edit", path="a.txt", old="two", new="2")
    assert "times in a.txt" in call(bounds, "edit", path="a.txt", old="e", new="E")
    assert call(bounds, "edit", path="a.txt", old="e", new="E", all=True) == "a.txt: 3 replaced"
    assert (work / "a.txt").read_text() == "onE\n2\nthrEE\n"


@pytest.mark.requirement("llm:tools:grep")
def test_a_search_is_limited_in_matches_and_in_time(bounds: Bounds, work: Path) -> None:
    (work / "many.txt").write_text("match\n" * 1_000)
    said = call(bounds, "grep", pattern="match").splitlines()
    assert len(said) == search.MATCHES_MAX + 1
    assert said[-1] == f"[more than {search.MATCHES_MAX} matches; narrow the search]"
    (work / "slow.txt").write_text("a" * 4_000 + "!\n")
    began = time.monotonic()
    said_of_slow = call(bounds, "grep", pattern="(a+)+(b|c)+$", path="slow.txt")
    assert time.monotonic() - began < BOUND_S
    assert "too slow" in said_of_slow or said_of_slow == "(no match)"


@pytest.mark.requirement("llm:tools:grep")
def test_a_search_takes_a_glob_and_says_what_is_wrong_with_an_expression(
    bounds: Bounds, work: Path
) -> None:
    (work / "b.py").write_text("one = 1\n")
    assert call(bounds, "grep", pattern="^one", glob="*.py") == "b.py:1:one = 1"
    assert call(bounds, "grep", pattern="ONE", path="a.txt", ignore_case=True) == "a.txt:1:one"
    assert call(bounds, "grep", pattern="(").startswith("refused: pattern: ")


@pytest.mark.requirement("llm:tools:arguments")
def test_wrong_arguments_are_said_by_name_and_numbers_in_text_are_numbers(bounds: Bounds) -> None:
    assert call(bounds, "read", path="a.txt", limit="1").startswith("1\tone")
    assert "`path`" in call(bounds, "read")
    assert "`contents`" in call(bounds, "write", path="x", contents="y")


@pytest.mark.requirement("llm:scope:construction")
def test_only_the_tools_that_are_named_are_made(bounds: Bounds) -> None:
    shell = Shell(str(bounds.root), ())
    made = own_tools(["read", "grep"], bounds, shell, shell_timeout_s=1)
    assert [each.name for each in made] == ["read", "grep"]
    assert [each.name for each in own_tools(OWN_TOOLS, bounds, shell, shell_timeout_s=1)] == [
        *OWN_TOOLS
    ]


# -- shell --------------------------------------------------------------------------------------


def ran(work: Path, command: str, *, timeout_s: float = BOUND_S) -> Ran:
    """One command, with all that it left behind ended."""

    async def run() -> Ran:
        shell = Shell(str(work), ["PLANTED_KEY"])
        try:
            return await shell.run(command, timeout_s=timeout_s)
        finally:
            await shell.end_leftovers()

    return asyncio.run(run())


def alive(mark: str) -> list[int]:
    """Processes with this in their environment."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            is_marked = mark.encode() in (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if is_marked:
            found.append(int(entry.name))
    return found


@pytest.mark.requirement("llm:tools:shell")
def test_a_command_runs_in_the_working_directory_with_its_exit_code(work: Path) -> None:
    found = ran(work, "pwd; cat; echo bad >&2; exit 3")
    assert found == Ran(f"{work}\nbad\n", 3)


@pytest.mark.requirement("llm:tools:shell:key")
def test_a_command_does_not_get_the_key_of_the_provider(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANTED_KEY", "sk-planted")
    assert "sk-planted" not in ran(work, "env").output


@pytest.mark.requirement("llm:tools:shell:cut")
def test_of_a_long_output_the_beginning_and_the_end_are_kept(work: Path) -> None:
    found = ran(work, "echo first; yes | head -c 3000000; echo last")
    assert found.output.startswith("first\n")
    assert found.output.endswith("last\n")
    assert "bytes left out" in found.output
    assert len(found.output) < HEAD_BYTES + TAIL_BYTES + 100


@pytest.mark.requirement("llm:tools:shell:killed")
def test_a_command_over_its_time_is_killed_with_children_in_sessions_of_their_own(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLM_TEST", str(work))
    found = ran(work, "setsid sleep 300 & echo on; trap '' TERM; sleep 300", timeout_s=0.5)
    assert "killed: it ran longer" in (found.note or "")
    assert found.output == "on\n"
    assert alive(f"LLM_TEST={work}") == []


@pytest.mark.requirement("llm:tools:shell:background")
def test_what_a_command_leaves_in_the_background_does_not_hold_it_up_and_ends_with_the_turn(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLM_TEST", str(work))
    began = time.monotonic()
    found = ran(work, "nohup sleep 300 & echo on")
    assert time.monotonic() - began < BOUND_S
    assert (found.exit_code, found.output) == (0, "on\n")
    assert "background" in (found.note or "")
    assert alive(f"LLM_TEST={work}") == []


@pytest.mark.requirement("llm:tools:shell:killed")
def test_cancelling_a_command_kills_it(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_TEST", str(work))

    async def run() -> None:
        task = asyncio.create_task(
            Shell(str(work), ()).run("touch up; sleep 300 & sleep 300", timeout_s=BOUND_S)
        )
        async with asyncio.timeout(BOUND_S):
            while not (work / "up").exists():  # noqa: ASYNC110  another process makes it
                await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task], timeout=BOUND_S)
        assert task.cancelled()

    asyncio.run(run())
    assert alive(f"LLM_TEST={work}") == []
    assert MARK == "SUBAGENTS_SHELL"
