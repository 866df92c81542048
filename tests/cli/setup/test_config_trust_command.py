"""A person lets agents use a project's file; a worker cannot."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.cli_home import Home, temporary_home

from subagents.client.client import Client
from subagents.config.paths import Paths
from subagents.errors import Forbidden

PROJECT = """
[agents.main]
subagents.allow_agents = ["local"]

[agents.local]
runtime = "command"
command = ["sh", "-c", "{task}"]
"""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with temporary_home(tmp_path) as found:
        yield found


def spawn_as_agent(home: Home) -> dict[str, object]:
    """What a client that is driven by an agent gets in the project's directory."""
    socket = Paths.resolve(home.env()).socket
    headers = {"X-Subagents-Caller": "agent"}
    with Client(socket, headers=headers) as client:
        spec = {"task": "echo hi", "agentId": "local"}
        return client.post("/v1/runs", {"spec": spec, "cwd": str(home.work)})


@pytest.mark.requirement("trust:by-content", "cli:config-trust")
def test_an_agent_may_use_a_project_file_once_a_person_trusts_it(home: Home) -> None:
    file = home.work / "subagents.toml"
    file.write_text(PROJECT)
    home.ok("up")
    with pytest.raises(Forbidden, match="allow_agents") as caught:
        spawn_as_agent(home)
    assert str(caught.value.hint).endswith(f"subagents config --trust {file.resolve()}")
    shown = home.ok("config", "agents.main")
    assert "ignored for agents: agents.main.subagents.allow_agents" in shown.err
    assert home.ok("run", "echo by hand", "--agent", "local").out == "by hand\n"

    asked = home.cli("config", "--trust")  # nobody is here to be asked
    assert (asked.code, "--yes" in asked.err) == (2, True)
    assert home.ok("config", "--trust", "--yes", "--json").json == {
        "file": str(file.resolve()),
        "trusted": True,
    }
    receipt = spawn_as_agent(home)
    assert (receipt["agentId"], receipt["warnings"]) == ("local", [])

    file.write_text(f"{PROJECT}\n")
    with pytest.raises(Forbidden):
        spawn_as_agent(home)


@pytest.mark.requirement("cli:config-trust")
def test_a_worker_can_neither_trust_a_file_nor_write_a_trusted_one(home: Home) -> None:
    (home.work / "subagents.toml").write_text(PROJECT)
    worker = {"SUBAGENTS_RUN_ID": "r-0000000000"}
    refused = home.cli("config", "--trust", "--yes", env=worker)
    assert (refused.code, "a worker cannot trust a file" in refused.err) == (4, True)

    assert home.cli("init", "--yes", env=worker).code == 0
    assert not (Paths.resolve(home.env()).state_dir / "trusted-projects.json").exists()
    assert home.ok("init", "--yes").code == 0
    assert (Paths.resolve(home.env()).state_dir / "trusted-projects.json").exists()


@pytest.mark.requirement("cli:config-trust")
def test_a_file_that_is_not_there_or_wrong_is_not_trusted(home: Home) -> None:
    missing = home.cli("config", "--trust", "--yes")
    assert (missing.code, "there is no project file here" in missing.err) == (3, True)
    named = home.cli("config", "--trust", "nothing.toml", "--yes")
    assert named.code == 3
    (home.work / "subagents.toml").write_text("[agents.x]\nruntim = 1\n")
    wrong = home.cli("config", "--trust", "--yes")
    assert (wrong.code, "runtim" in wrong.err) == (2, True)
