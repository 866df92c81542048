"""``import`` shows what it would add, adds it once, and leaves the rest of the file alone."""

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.cli_home import Home, temporary_home

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
    done = home.ok("import", "claude-agents", "--yes")

    assert "+[agents.looker]" in done.out
    written = tomllib.loads(file_of(home).read_text())["agents"]
    assert written.keys() == {"looker", "second"}
    assert written["looker"]["instructions"] == 'You "look" \\ at ünï 😀.\n\nThen say.'
    assert "looker" in home.ok("agents", "list").out


@pytest.mark.requirement("import:keeps-what-is-there")
def test_what_the_file_says_already_stays_as_it_is_and_a_second_import_adds_nothing(
    home: Home,
) -> None:
    file = file_of(home)
    file.write_text(MINE + '\n[agents.second]\nruntime = "command"\ncommand = ["true"]\n')
    before = file.read_text()
    first = home.ok("import", "claude-agents", "--yes")
    after = file.read_text()
    second = home.ok("import", "claude-agents", "--yes")

    assert after.startswith(before.rstrip())
    assert "agents.second is there already" in first.err
    assert [each.read_text() for each in file.parent.glob("subagents.toml.bak-*")] == [before]
    assert "nothing to write" in second.out
    assert file.read_text() == after


@pytest.mark.requirement("import:asks")
@pytest.mark.parametrize("flags", [("--dry-run",), ()])
def test_nothing_is_written_without_a_yes(home: Home, flags: tuple[str, ...]) -> None:
    done = home.cli("import", "claude-agents", *flags)

    assert "+[agents.looker]" in done.out
    assert not file_of(home).exists()
    assert done.code == (0 if flags else 2)


@pytest.mark.requirement("import:asks")
def test_what_the_configuration_would_refuse_is_not_written(home: Home) -> None:
    (home.work / ".claude/agents/odd.md").write_text(
        "---\nmaxTurns: 3\nname: odd\ntools: ['']\n---"
    )
    done = home.cli("import", "claude-agents", "--yes")

    assert done.code == 2
    assert "agents.odd.tools" in done.err
    assert not file_of(home).exists()


@pytest.mark.requirement("import:openclaw")
def test_an_openclaw_file_with_comments_is_read_and_reported_as_json(home: Home) -> None:
    file = home.work / "openclaw.json"
    file.write_text("// mine\n{agents: {list: [{id: 'one', sandbox: {},}], },}")
    done = home.ok("import", "openclaw", "openclaw.json", "--yes", "--json").json

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
