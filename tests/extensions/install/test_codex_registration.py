"""Codex's file: all but our table stays, and it is replaced in one step."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subagents.errors import ConfigError, Conflict
from subagents.extensions.install.agent_programs import agent_program
from subagents.extensions.install.codex_registration import change_of, with_entry
from subagents.extensions.install.file_change import Change, write

Document = dict[str, Any]
PATH = ("mcp_servers", "subagents")
ENTRY: Document = {"command": "x", "args": ["m"], "env": {"A": 'q"'}}


def change(file: Path, entry: Document | None) -> Change:
    return change_of(agent_program("codex", {"CODEX_HOME": str(file.parent)}, project=None), entry)


@pytest.mark.requirement("mcp-install:keeps-the-rest")
@given(
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 9)),
    st.sampled_from(["", "[mcp_servers.b] # keep\nx = 'a [b]'\n"]),
    st.sampled_from(["", "# about next\n[next]\ny = 1\n", "\n# about next\n[next]\ny = 1\n"]),
)
def test_our_table_comes_and_goes_without_a_trace(
    values: dict[str, int], before: str, after: str
) -> None:
    text = "".join(f"{name} = {value}\n" for name, value in values.items()) + before + after

    changed = with_entry(text, PATH, ENTRY)
    taken = with_entry(changed, PATH, None)

    assert tomllib.loads(changed)["mcp_servers"]["subagents"] == ENTRY
    assert [line for line in taken.splitlines() if line] == [
        line for line in text.splitlines() if line
    ]
    assert with_entry(changed, PATH, ENTRY) == changed


@pytest.mark.requirement("mcp-install:keeps-the-rest")
def test_comments_order_and_other_servers_stay(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    mine = (
        '# mine\nmodel = "gpt"\n\n[mcp_servers.other]\ncommand = "x" # keep\n\n'
        '[mcp_servers.subagents]\ncommand = "/old"\n\n# about more\n[more]\nx = 1 # so\n'
    )
    file.write_text(mine)

    backup = write(change(file, ENTRY))

    changed = file.read_text()
    assert tomllib.loads(changed)["mcp_servers"] == {"other": {"command": "x"}, "subagents": ENTRY}
    kept = [line for line in mine.splitlines() if line and "/old" not in line]
    assert all(line in changed.splitlines() for line in kept)
    assert backup is not None
    assert backup.read_text() == mine
    write(change(file, None))
    without = [line for line in kept if line != "[mcp_servers.subagents]"]
    assert [line for line in file.read_text().splitlines() if line] == without


@pytest.mark.requirement("mcp-install:refuses-broken")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a = = 1", "not valid TOML"),
        ("mcp_servers = 1", "in a form not known here"),
        ("mcp_servers = { other = { command = 'x' } }", "in a form not known here"),
        ("mcp_servers.subagents.command = 'x'", "in a form not known here"),
    ],
)
def test_a_file_that_is_no_such_toml_is_named_and_left_alone(
    tmp_path: Path, text: str, reason: str
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)

    with pytest.raises(ConfigError, match=reason) as caught:
        change(file, ENTRY)

    assert str(file) in caught.value.message
    assert "nothing was written" in caught.value.message
    assert [each.name for each in tmp_path.iterdir()] == ["config.toml"]


@pytest.mark.requirement("mcp-install:atomic")
def test_the_files_mode_and_its_link_stay(tmp_path: Path) -> None:
    dotfiles = tmp_path / "dotfiles"
    dotfiles.mkdir()
    target = dotfiles / "codex.toml"
    target.write_text("")
    target.chmod(0o640)
    file = tmp_path / "config.toml"
    file.symlink_to(target)

    write(change(file, ENTRY))

    assert file.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o640
    assert tomllib.loads(target.read_text())["mcp_servers"]["subagents"] == ENTRY
    assert [each.name for each in dotfiles.iterdir() if each.name.startswith(".")] == []


@pytest.mark.requirement("mcp-install:atomic")
def test_a_file_that_changed_after_it_was_shown_is_not_written(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    shown = change(file, ENTRY)
    file.write_text("x = 1\n")
    with pytest.raises(Conflict, match="changed in the meantime"):
        write(shown)
    assert file.read_text() == "x = 1\n"
