"""`[mcp_servers]`: what may stand there, whose file counts, and what a worker gets of it."""

import json
from pathlib import Path

import pytest
from tests.builders import in_phase

from subagents.config.layers import Config, load
from subagents.config.paths import Paths
from subagents.config.settings import Settings
from subagents.config.trust import trust
from subagents.domain.run.run import Phase
from subagents.errors import ConfigError, UsageError
from subagents.extensions.mcp.named_servers import McpServer, worker_env

GITHUB = """
[mcp_servers.github]
command = "github-mcp-server"
args = ["stdio"]
env = { GITHUB_TOKEN = "secret:gh", LOG = "debug" }
"""


def loaded(root: Path, text: str, *, project: str = "", trusted: bool = False) -> Config:
    environ = {"SUBAGENTS_HOME": str(root / "home"), "HOME": str(root)}
    paths = Paths.resolve(environ)
    paths.config_file.parent.mkdir(parents=True)
    paths.config_file.write_text(text)
    place = root / "project"
    place.mkdir()
    (place / "subagents.toml").write_text(project)
    if trusted:
        trust(paths, place / "subagents.toml")
    return load(place, environ, paths=paths)


@pytest.mark.requirement("mcp-servers:config")
@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("", r"mcp_servers\.x needs either command or url"),
        ("command = 'a'\nurl = 'http://b'", "needs either command or url"),
        ("url = 'http://b'\nargs = ['c']", r"x\.url is set, and args and env are for command"),
        ("command = 'a'\nheaders.X = 'y'", r"x\.command is set, and headers are for url"),
        ("command = 'a'\nargs = ['secret:b']", r"x\.args would show a secret"),
        ("command = 'a'\nenv.API_TOKEN = 'hunter2'", r"x\.env\.API_TOKEN must refer to a secret"),
        ("url = 'http://b'\nheaders.Authorization = 'Bearer b'", "Authorization must refer to"),
        ("url = 'http://b'\nheaders.X = 'Bearer secret:'", r"x\.headers\.X .*is no name of a"),
    ],
)
def test_a_server_that_could_not_work_or_would_show_a_secret_is_refused_by_its_key(
    tmp_path: Path, table: str, words: str
) -> None:
    with pytest.raises(ConfigError, match=words) as refused:
        loaded(tmp_path, f"[mcp_servers.x]\n{table}\n")
    assert refused.value.hint
    assert "hunter2" not in refused.value.message


@pytest.mark.requirement("mcp-servers:config")
def test_an_agent_that_names_a_server_that_is_not_there_is_refused_by_its_key(
    tmp_path: Path,
) -> None:
    agent = "[agents.coder]\nruntime = 'codex'\nmcp_servers = ['gihub']\n"
    with pytest.raises(
        ConfigError, match=r'agents\.coder\.mcp_servers names "gihub".*did you mean "github"'
    ):
        loaded(tmp_path, GITHUB + agent)


@pytest.mark.requirement("mcp-servers:trust")
@pytest.mark.parametrize("trusted", [False, True])
def test_a_project_defines_no_server_and_gives_none_to_its_agents(
    tmp_path: Path, *, trusted: bool
) -> None:
    project = (
        "[mcp_servers.github]\ncommand = '/tmp/evil'\n"
        "[agents.theirs]\nruntime = 'codex'\nmcp_servers = ['github']\n"
    )
    found = loaded(tmp_path, GITHUB, project=project, trusted=trusted)

    assert found.settings.named(McpServer)["github"].command == "github-mcp-server"
    assert any("[mcp_servers] counts in your own file alone" in line for line in found.ignored)
    given = found.for_agents().settings.agent("theirs").mcp_servers
    assert given == (("github",) if trusted else ())


@pytest.mark.requirement("mcp-servers:secrets")
def test_a_worker_gets_its_servers_with_references_and_each_secret_apart(tmp_path: Path) -> None:
    settings = loaded(tmp_path, GITHUB).settings
    run = in_phase(Phase.QUEUED, options={"mcp_servers": ["github"]}).run

    found = dict(worker_env(run, lambda _: None, settings))

    given = json.loads(found.pop("SUBAGENTS_MCP_SERVERS"))
    assert given["servers"]["github"]["env"]["GITHUB_TOKEN"] == "secret:gh"
    assert given["secrets"] == {"gh": "SUBAGENTS_MCP_SECRET_1"}
    assert found == {"SUBAGENTS_MCP_SECRET_1": "secret:gh"}
    assert worker_env(in_phase(Phase.QUEUED).run, lambda _: None, settings) == {}
    with pytest.raises(UsageError, match=r"mcp_servers\.github is not configured here"):
        worker_env(run, lambda _: None, Settings())
