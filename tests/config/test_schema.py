"""The schema and the reference page say what the loader does."""

import tomllib
from pathlib import Path

import jsonschema_rs
import pytest
from scripts import config_reference
from scripts.marked_pages import update
from tests.config.key_variables import KEYS, is_set_by_its_variable

from subagents.config.keys import Key, Table, tree
from subagents.config.layers import ConfigCache, load
from subagents.config.paths import Paths
from subagents.config.schema import json_schema
from subagents.errors import ConfigError
from subagents.extension import settings_tables

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"


def example() -> str:
    return PAGE.read_text(encoding="utf-8").split("```toml\n")[1].split("```")[0]


def is_loaded(text: str, home: Path) -> bool:
    environ = {"SUBAGENTS_HOME": str(home)}
    paths = Paths.resolve(environ)
    paths.config_file.parent.mkdir(parents=True, exist_ok=True)
    paths.config_file.write_text(text, encoding="utf-8")
    try:
        load(None, environ, paths=paths)
    except ConfigError:
        return False
    return True


def unexplained(node: Key | Table, path: str = "") -> list[str]:
    if isinstance(node, Key):
        return [] if node.description else [path]
    children = {**node.keys, **({node.placeholder: node.each} if node.each else {})}
    return [
        each for name, child in children.items() for each in unexplained(child, f"{path}.{name}")
    ]


@pytest.mark.requirement("config:documented")
def test_every_key_is_explained() -> None:
    assert unexplained(tree()) == []


@pytest.mark.requirement("config:documented")
def test_an_outdated_page_fails_the_check_and_is_mended_by_writing_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    current = config_reference.drawn(PAGE.read_text(encoding="utf-8"))
    page.write_text(current.replace("| `1` |", "| `2` |"))

    assert update(["--check", str(page)], "", config_reference.drawn) == 1
    assert capsys.readouterr().err == f"{page} is out of date: run `make docs`\n"
    assert update([str(page)], "", config_reference.drawn) == 0
    assert update(["--check", str(page)], "", config_reference.drawn) == 0
    assert page.read_text(encoding="utf-8") == current


@pytest.mark.requirement("config:documented")
def test_the_documented_example_loads(tmp_path: Path) -> None:
    environ = {"SUBAGENTS_HOME": str(tmp_path)}
    paths = Paths.resolve(environ)
    paths.config_file.parent.mkdir()
    paths.config_file.write_text(example(), encoding="utf-8")

    settings = ConfigCache(environ, paths).load().settings

    assert settings.agent("researcher").tools == ("Read", "Grep", "WebSearch")
    assert settings.agent("build").lane == "heavy"
    assert settings.run_timeout_ms("build") == 900_000


VALUES = {
    "agents.<id>.courier.webhook": "https://bot.example/hook",
    "agents.<id>.courier.webhook_secret_env": "BOT_SECRET",
    "agents.<id>.cwd": "/srv",
    "agents.<id>.mcp_servers": "[]",
    "daemon.http_host": "::1",
    "daemon.store": "postgresql://db.example/subagents",
}
"""Of keys with a form of their own."""
BESIDE = {
    "SUBAGENTS_AGENTS__SOME__COURIER__WEBHOOK": "https://bot.example/hook",
    "SUBAGENTS_DAEMON__STORE": "postgresql://db.example/other",
    "SUBAGENTS_DAEMON__TLS_CERT": "cert.pem",
    "SUBAGENTS_DAEMON__TLS_KEY": "key.pem",
    "SUBAGENTS_LANES__100__SLOTS": "1",
    "SUBAGENTS_AGENTS__100__MODEL": "m",
}
"""What keys that name each other need."""


@pytest.mark.requirement("config:environment")
@pytest.mark.parametrize(
    "key", [key for key in KEYS if key.partition(".")[0] not in settings_tables()]
)
def test_every_key_can_be_set_by_its_variable(key: str, tmp_path: Path) -> None:
    assert is_set_by_its_variable(key, tmp_path, VALUES, BESIDE)


@pytest.mark.requirement("config:schema")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "[agents.defaults.subagents]\nmax_spawn_depth = 2\n",
        "[agents.defaults.subagents]\nmax_spawn_depth = -1\n",
        "[agents.defaults.subagents]\nmax_spawn_depth = true\n",
        "[agents.defaults]\nmodel = 'x'\n",
        "[agents.a]\nmodle = 'x'\n",
        "[agents.A]\n",
        "[agents.a]\nruntime = 'No such name'\n",
        "[agents.a]\nruntime = 'acp'\nruntime_options.agent = 'gemini'\n",
        "[agents.a]\nruntime = 'acp'\nruntime_options = 'gemini'\n",
        "[agents.a.env]\nA = '1'\n",
        "[agents.a.env]\n'A B' = '1'\n",
        "[telemetry]\notlp_endpoint = 'http://127.0.0.1:4318'\nheaders = { X-Key = 'k' }\n",
        "[telemetry]\notlp_endpoint = 'https://me:secret@127.0.0.1'\n",
        "[telemetry]\notlp_endpoint = 'ftp://127.0.0.1'\n",
        "[telemetry.headers]\n'A B' = '1'\n",
        "[agents.a.capabilities]\ncost_tier = 'free'\ntags = ['']\n",
        "[agents.a.alerts]\ncost_usd = [0.5, 2]\noff = ['stuck']\nbudget_percent = []\n",
        "[agents.a.alerts]\nbudget_percent = [0]\n",
        "[agents.a.alerts]\nbudget_percent = [101]\n",
        "[agents.a.alerts]\nbudget_percent = ['50']\n",
        "[agents.a.alerts]\nbudget_percent = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]\n",
        "[agents.a.alerts]\ncost_usd = [0]\n",
        "[agents.a.alerts]\noff = ['stucked']\n",
        "[lanes.default]\nslots = 2\n",
        "[lanes.heavy]\nslots = 2\n",
        "[retention]\nresult_retention_days = 6\n",
        "[daemon]\nlease_seconds = 0.5\n",
        "[daemon]\nstore = 'postgresql://db.example/subagents'\nnode = 'box-1.example'\n",
        "[daemon]\nstore = 'mysql://db.example/subagents'\n",
        "[daemon]\nnode = 'box 1'\n",
        "zzz = 1\n",
    ],
)
def test_the_schema_accepts_what_the_loader_accepts(text: str, tmp_path: Path) -> None:
    validator = jsonschema_rs.Draft202012Validator(json_schema())

    assert validator.is_valid(tomllib.loads(text)) == is_loaded(text, tmp_path)


@pytest.mark.requirement("config:schema")
def test_the_schema_accepts_the_documented_example() -> None:
    validator = jsonschema_rs.Draft202012Validator(json_schema())

    assert [error.message for error in validator.iter_errors(tomllib.loads(example()))] == []
