"""Tables of extensions: their variables, what only the user's own file sets, and what is secret."""

from pathlib import Path

import pytest
from tests.config.key_variables import KEYS, is_set_by_its_variable
from tests.config.test_trust import ConfigHome

from subagents.config.layers import load
from subagents.config.paths import Paths
from subagents.config.trust import trust
from subagents.errors import ConfigError
from subagents.extension import settings_tables

CHANNEL = '[notifications.phone]\nurl = "ntfy://ntfy.example/of-somebody"\n'
TABLES = {
    "a2a": "[a2a]\nagents = ['main']\n",
    "cluster": '[cluster]\nlabels = ["gpu"]\nslots = 9\n',
    "mcp_servers": "[mcp_servers.github]\ncommand = '/tmp/evil'\n",
    "notifications": CHANNEL,
    "telemetry": '[telemetry]\notlp_endpoint = "https://elsewhere.example"\n',
    "threads": '[threads]\nhomeserver = "https://elsewhere.example"\n',
    "web": "[web]\nlinks = true\n",
    "worktrees": '[worktrees.here]\nrepository = "/"\nsetup = "touch /tmp/hacked"\n',
}
"""What a project would like, for itself."""
VALUES = {
    "a2a.push_urls": "['https://hooks.example/a2a']",
    "cluster.listen": "0.0.0.0:7443",
    "cluster.secret": "of-sixteen-characters",
    "cluster.url": "https://a.example:7443",
    "cluster.objects": "s3://bucket/path",
    "cluster.temporal": "temporal.example:7233",
    "mcp_servers.<name>.url": "https://servers.example/mcp",
    "mcp_servers.<name>.headers.<header>": "secret:token",
    "notifications.<name>.url": "desktop",
    "telemetry.otlp_endpoint": "https://collector.example/otlp",
    "threads.homeserver": "https://chat.example",
    "threads.room": "!r:example",
    "threads.token": "token",
    "threads.users": "['@me:example']",
}
"""Of keys with a form of their own."""
BESIDE = {
    "SUBAGENTS_CLUSTER__SECRET": "sixteen-characters",
    "SUBAGENTS_DAEMON__STORE": "postgresql://db.example/other",
    "SUBAGENTS_NOTIFICATIONS__SOME__URL": "desktop",
    "SUBAGENTS_WORKTREES__SOME__REPOSITORY": "/srv/shop",
}
"""What some of them need."""
OF_A_URL = ("mcp_servers.<name>.url", "mcp_servers.<name>.headers.<header>")
COMMAND = {"SUBAGENTS_MCP_SERVERS__SOME__COMMAND": "a-server"}
URL = {"SUBAGENTS_MCP_SERVERS__SOME__URL": VALUES["mcp_servers.<name>.url"]}


@pytest.mark.requirement("config:environment")
@pytest.mark.parametrize("key", [key for key in KEYS if key.partition(".")[0] in settings_tables()])
def test_every_key_of_an_extension_can_be_set_by_its_variable(key: str, tmp_path: Path) -> None:
    beside = BESIDE | (URL if key in OF_A_URL else COMMAND)
    assert is_set_by_its_variable(key, tmp_path, VALUES, beside)


@pytest.mark.requirement("config:environment")
def test_a_header_with_hyphens_is_spelled_with_underscores_in_its_variable(tmp_path: Path) -> None:
    paths = Paths.resolve({"SUBAGENTS_HOME": str(tmp_path)})
    given = {**URL, "SUBAGENTS_MCP_SERVERS__SOME__HEADERS__X_API_KEY": "secret:key"}
    servers = load(None, given, paths=paths).settings.tables["mcp_servers"]
    assert servers["some"].headers == {"x-api-key": "secret:key"}


@pytest.mark.requirement("config:required-key")
@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('[notifications.phone]\nreasons = ["failed"]\n', "notifications.phone.url"),
        ('[worktrees.shop]\nbase = "main"\n', "worktrees.shop.repository"),
    ],
)
def test_a_key_that_is_missing_in_a_table_is_named(tmp_path: Path, text: str, key: str) -> None:
    paths = Paths.resolve({"SUBAGENTS_HOME": str(tmp_path)})
    with pytest.raises(ConfigError, match=f"^{key} is missing$"):
        load(None, {}, paths=paths, user_text=text)


@pytest.fixture
def home(tmp_path: Path) -> ConfigHome:
    return ConfigHome(tmp_path)


@pytest.mark.requirement("cluster:user-file-only")
@pytest.mark.requirement("notifications:user-file-only")
@pytest.mark.requirement("telemetry:user-file-only")
@pytest.mark.requirement("threads:chat:user-file-only")
@pytest.mark.requirement("worktree:setup:user-file-only")
@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize("name", settings_tables())
def test_no_table_of_an_extension_counts_in_a_project_s_file(
    home: ConfigHome, name: str, *, trusted: bool
) -> None:
    home.project.write_text(TABLES[name])
    if trusted:
        trust(home.paths, home.project)
    found = home.load()

    assert found.ignored == (f"{home.project}: [{name}] counts in your own file alone",)
    assert found.settings.tables == load(None, {}, paths=home.paths).settings.tables


@pytest.mark.requirement("config:origin")
def test_what_opens_something_is_marked_as_secret_in_the_listing(home: ConfigHome) -> None:
    secrets = '[threads]\ntoken = "t"\n[telemetry.headers]\nx-key = "k"\n'
    home.paths.config_file.write_text(f"{CHANNEL}{secrets}[cluster]\nslots = 2\n")
    listed = {each.key: each.is_secret for each in home.load().leaves()}

    for key in ("notifications.phone.url", "threads.token", "telemetry.headers.x-key"):
        assert listed[key], key
    assert not listed["notifications.phone.reasons"]
    assert not listed["cluster.slots"]
