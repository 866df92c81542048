"""``import`` shows what it would add, adds it once, and leaves the rest of the file alone."""

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.cli_home import Home, temporary_home

from subagents.extensions.install.foreign_agents import Imported
from subagents.extensions.install.import_commands import merged

AGENT = '---\nname: {name}\ndescription: Looks\n---\nYou "look" \\ at ünï 😀.\n\nThen say.\n'
MINE = "# mine\n[agents.main.subagents]\nallow_agents = []  # nobody\n"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with temporary_home(tmp_path) as found:
        agents = found.work / ".claude" / "agents"
        agents.mkdir(parents=True)
        for name in ("looker", "second"):
            (agents / f"{name}.md").write_text(AGENT.format(name=name))
        yield found


def file_of(home: Home) -> Path:
    return home.work / "subagents.toml"


@pytest.mark.requirement("import:claude-agents")
def test_claudes_subagents_become_agents_that_the_configuration_takes(home: Home) -> None:
    done = home.ok("init", "--from", "claude-agents", "--yes")

    assert "+[agents.looker]" in done.out
    written = tomllib.loads(file_of(home).read_text())["agents"]
    assert written.keys() == {"looker", "second"}
    assert written["looker"]["instructions"] == 'You "look" \\ at ünï 😀.\n\nThen say.'
    assert "looker" in home.ok("agents").out


@pytest.mark.requirement("import:keeps-what-is-there")
def test_what_the_file_says_already_stays_as_it_is_and_a_second_import_adds_nothing(
    home: Home,
) -> None:
    file = file_of(home)
    file.write_text(MINE + '\n[agents.second]\nruntime = "command"\ncommand = ["true"]\n')
    before = file.read_text()
    first = home.ok("init", "--from", "claude-agents", "--yes")
    after = file.read_text()
    second = home.ok("init", "--from", "claude-agents", "--yes")

    assert after.startswith(before.rstrip())
    assert "agents.second is there already" in first.err
    assert [each.read_text() for each in file.parent.glob("subagents.toml.bak-*")] == [before]
    assert "nothing to write" in second.out
    assert file.read_text() == after


@pytest.mark.requirement("import:asks")
@pytest.mark.parametrize("flags", [("--dry-run",), ()])
def test_nothing_is_written_without_a_yes(home: Home, flags: tuple[str, ...]) -> None:
    done = home.cli("init", "--from", "claude-agents", *flags)

    assert "+[agents.looker]" in done.out
    assert not file_of(home).exists()
    assert done.code == (0 if flags else 2)


@pytest.mark.requirement("import:file-by-file", "files:byte-order-mark")
def test_each_file_is_read_by_itself_also_in_folders_below_and_what_became_of_it_is_said(
    home: Home,
) -> None:
    agents = home.work / ".claude" / "agents"
    (agents / "README.md").write_text("# Our agents\n")
    (agents / "latin.md").write_bytes(b"---\nname: caf\xe9\n---\n")
    (agents / "pipe.md").mkdir()
    (agents / "zero.md").symlink_to("/dev/zero")
    below = agents / "teams" / "web"
    below.mkdir(parents=True)
    (below / "bom.md").write_bytes("\ufeff---\r\nname: bom\r\n---\r\nB\r\n".encode())
    (below / "colon.MD").write_text("---\nname: colon\ndescription: a: b\n---\nB\n")
    (agents / ".git").mkdir()
    (agents / ".git" / "hidden.md").write_text(AGENT.format(name="hidden"))
    file_of(home).write_bytes(f"\ufeff{MINE}".encode())
    done = home.ok("init", "--from", "claude-agents", "--yes", "--json").json
    assert isinstance(done["leftOut"], list)
    assert isinstance(done["added"], list)
    assert isinstance(done["changed"], list)

    assert done["added"] == ["looker", "second", "bom", "colon"]
    assert [each.split(":")[0] for each in done["changed"]] == ["colon"]
    assert [each.split(":")[0] for each in done["leftOut"]] == [
        "README.md",
        "latin.md",
        "zero.md is a device, not a regular file",
    ]
    assert "bom" in home.ok("agents").out


@pytest.mark.requirement("import:file-by-file")
def test_where_no_file_is_an_agent_it_says_why_instead_of_having_all_of_them(home: Home) -> None:
    (home.work / "docs").mkdir()
    (home.work / "docs" / "README.md").write_text("# x\n")
    done = home.cli("init", "--from", "claude-agents", "docs", "--yes")

    assert done.code == 3
    assert "README.md: no frontmatter" in done.err
    assert "no agent was found" in done.err


@pytest.mark.requirement("import:bounded-work")
def test_agents_beyond_what_a_file_may_have_are_left_out_and_the_rest_works(home: Home) -> None:
    agents = home.work / ".claude" / "agents"
    for number in range(40):
        text = f"---\nname: big{number:02}\n---\n{'word ' * 6_000}\n"
        (agents / f"big{number:02}.md").write_text(text)
    done = home.ok("init", "--from", "claude-agents", "--yes", "--json").json
    assert isinstance(done["leftOut"], list)
    assert isinstance(done["added"], list)
    assert isinstance(done["changed"], list)

    assert 30 < len(done["added"]) < 42
    assert "the file would be over 1,048,576 bytes" in done["leftOut"][0]
    assert "big00" in home.ok("agents").out


@pytest.mark.requirement("import:openclaw")
def test_files_that_an_openclaw_file_includes_are_read_as_openclaw_reads_them(home: Home) -> None:
    (home.work / "more").mkdir()
    (home.work / "o.json").write_text(
        "{agents: {$include: ['./a.json5', 'more/b.json5', 'gone.json', '/etc/hostname'],"
        " defaults: {workspace: 'w'}}}"
    )
    (home.work / "a.json5").write_text("\ufeff// mine\n{list: [{id: 'a'}], defaults: {model: 'x'}}")
    (home.work / "more" / "b.json5").write_text("{list: [{$include: './c.json'}, {id: 'b'}]}")
    (home.work / "more" / "c.json").write_text('{"id": "c", "x": {"$include": "../o.json"}}')
    done = home.ok("init", "--from", "openclaw", "o.json", "--yes", "--json").json
    assert isinstance(done["leftOut"], list)
    assert isinstance(done["added"], list)
    assert isinstance(done["changed"], list)

    written = tomllib.loads(file_of(home).read_text())["agents"]
    assert {name: (each["cwd"], each["model"]) for name, each in written.items()} == dict.fromkeys(
        ("a", "c", "b"), ("w", "x")
    )
    assert len(done["leftOut"]) == 3
    assert "o.json includes itself" in done["leftOut"][0]
    assert "gone.json: No such file" in done["leftOut"][1]
    assert "/etc/hostname is outside of the folder" in done["leftOut"][2]


@pytest.mark.requirement("import:bounded-work")
def test_files_that_include_each_other_nine_times_are_read_a_hundred_times_at_most(
    home: Home,
) -> None:
    for level in range(9):
        names = ",".join([f"'b{level + 1}.json'"] * 9)
        (home.work / f"b{level}.json").write_text(f"{{$include: [{names}]}}")
    (home.work / "b9.json").write_text("{agents: {list: [{id: 'a'}]}}")
    done = home.ok("init", "--from", "openclaw", "b0.json", "--dry-run", "--json").json

    assert done["added"] == ["a"]
    assert isinstance(done["leftOut"], list)
    assert any("too many of them" in each for each in done["leftOut"])


@pytest.mark.requirement("import:openclaw")
@pytest.mark.parametrize(
    "text",
    [
        "{agents: {}}",
        "{agents: {list: []}}",
        "{agents: {$include: './x.json5'}}",
        "{agents: {list: 5}}",
    ],
)
def test_a_file_without_agents_has_none_and_not_all_of_them(home: Home, text: str) -> None:
    (home.work / "o.json").write_text(text)
    done = home.cli("init", "--from", "openclaw", "o.json", "--yes")

    assert done.code == 3
    assert "no agent was found" in done.err


@pytest.mark.requirement("import:openclaw")
def test_an_openclaw_file_with_comments_is_read_and_reported_as_json(home: Home) -> None:
    file = home.work / "openclaw.json"
    file.write_text("// mine\n{agents: {list: [{id: 'one', sandbox: {},}], },}")
    done = home.ok("init", "--from", "openclaw", "openclaw.json", "--yes", "--json").json
    assert isinstance(done["leftOut"], list)
    assert isinstance(done["added"], list)
    assert isinstance(done["changed"], list)

    assert (done["written"], done["added"]) == (True, ["one"])
    assert done["notImported"] == ["agents.list[one].sandbox has no equal here"]
    assert tomllib.loads(file_of(home).read_text())["agents"]["one"]["runtime"] == "acp"


@pytest.mark.requirement("import:claude-agents", "import:openclaw")
@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (("claude-agents", "nowhere"), "there are no .md files in"),
        (("openclaw", "nowhere.json"), "cannot read"),
        (("openclaw", ".claude/agents/looker.md"), "is not JSON5"),
    ],
)
def test_what_is_not_there_or_no_such_file_is_refused(
    home: Home, argv: tuple[str, ...], why: str
) -> None:
    done = home.cli("import", *argv)

    assert done.code in {2, 3}
    assert why in done.err


PLAIN = st.one_of(
    st.text(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.lists(st.text(), max_size=3)
)
NAMES = st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]))


@pytest.mark.requirement("import:keeps-what-is-there")
@given(
    values=st.dictionaries(
        NAMES, st.one_of(PLAIN, st.dictionaries(NAMES, PLAIN, max_size=3)), max_size=5
    )
)
def test_what_is_written_is_read_back_as_it_was(values: dict[str, object]) -> None:
    text, added, _ = merged("# mine\n", Imported({"one": values}, {}, [], [], []))

    assert added == ["one"]
    assert tomllib.loads(text)["agents"]["one"] == values
