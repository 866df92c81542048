"""The schema and the reference page say what the loader does."""

import tomllib
from pathlib import Path

import jsonschema_rs
import pytest
from msgspec import inspect
from scripts import config_reference
from scripts.marked_pages import update

from subagents.config.keys import Key, Table, leaves, tree
from subagents.config.layers import ConfigCache, load
from subagents.config.paths import Paths
from subagents.config.schema import json_schema
from subagents.errors import ConfigError

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


def variable(key: str) -> str:
    """The environment variable that sets a dotted key: `lanes.heavy.slots` → SUBAGENTS_LANES__…"""
    *tables, last = key.split(".")
    spelled = "__".join(part.upper().replace("-", "_") for part in tables)
    # Variables for workers keep their case: `agents.x.env.Path` is not `PATH`.
    end = last if tables[-1:] == ["env"] else last.upper()
    return f"SUBAGENTS_{spelled}__{end}"


def unexplained(node: Key | Table, path: str = "") -> list[str]:
    if isinstance(node, Key):
        return [] if node.description else [path]
    children = {**node.keys, **({node.placeholder: node.each} if node.each else {})}
    return [
        each for name, child in children.items() for each in unexplained(child, f"{path}.{name}")
    ]


@pytest.mark.requirement("config:documented")
def test_the_reference_page_has_every_key_as_it_is_in_the_structs() -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert config_reference.drawn(page) == page
    assert {name for name, _ in leaves() if f"| `{name}` |" not in page} == set()


@pytest.mark.requirement("config:documented")
def test_every_key_is_explained() -> None:
    assert unexplained(tree()) == []


@pytest.mark.requirement("config:documented")
def test_an_outdated_page_fails_the_check_and_is_mended_by_writing_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE.read_text(encoding="utf-8").replace("| `1` |", "| `2` |"))

    assert update(["--check", str(page)], "", config_reference.drawn) == 1
    assert capsys.readouterr().err == f"{page} is out of date: run `make docs`\n"
    assert update([str(page)], "", config_reference.drawn) == 0
    assert update(["--check", str(page)], "", config_reference.drawn) == 0
    assert page.read_text(encoding="utf-8") == PAGE.read_text(encoding="utf-8")


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
    "a2a.push_urls": "['https://hooks.example/a2a']",
    "cluster.listen": "0.0.0.0:7443",
    "cluster.url": "https://a.example:7443",
    "daemon.http_host": "::1",
    "cluster.objects": "s3://bucket/path",
    "cluster.temporal": "temporal.example:7233",
    "daemon.store": "postgresql://db.example/subagents",
    "notifications.<name>.url": "desktop",
    "telemetry.otlp_endpoint": "https://collector.example/otlp",
}
"""Of keys with a form of their own."""


@pytest.mark.requirement("config:environment")
@pytest.mark.parametrize("key", [name for name, _ in leaves()])
def test_every_key_can_be_set_by_its_variable(key: str, tmp_path: Path) -> None:
    node = dict(leaves())[key]
    fitting = {"true or false": "true", "a list of tables": "[{ a = 1 }]"}
    is_list = isinstance(node.type, inspect.VarTupleType)
    value = fitting.get(node.allowed, "x" if is_list else "100")
    item = node.type.item_type if isinstance(node.type, inspect.VarTupleType) else node.type
    if node.choices:
        value = node.choices[-1]
    if isinstance(item, inspect.IntType | inspect.FloatType):
        value = str(item.le)
    if is_list and not isinstance(item, inspect.DictType):
        value = (
            f"['{value}']" if isinstance(item, inspect.StrType | inspect.EnumType) else f"[{value}]"
        )
    if key.endswith(".cwd"):
        value = "/srv"
    value = VALUES.get(key, value)
    if key.startswith("threads."):
        value = {"room": "!r:example", "users": "['@me:example']"}.get(
            key[8:], "https://chat.example"
        )
    if key.endswith(".webhook"):
        value = "https://bot.example/hook"
    if key.endswith(".webhook_secret_env"):
        value = "BOT_SECRET"
    if key.endswith(".runtime_options"):
        key += ".program"
    name = key.replace("<id>", "some").replace("<name>", "some").replace("<VARIABLE>", "Some_Var")
    name = name.replace("<header>", "x-api-key")
    environ = {
        "SUBAGENTS_HOME": str(tmp_path),
        "SUBAGENTS_AGENTS__SOME__COURIER__WEBHOOK": "https://bot.example/hook",
        "SUBAGENTS_NOTIFICATIONS__SOME__URL": "desktop",
        "SUBAGENTS_DAEMON__STORE": "postgresql://db.example/other",
        "SUBAGENTS_DAEMON__TLS_CERT": "cert.pem",
        "SUBAGENTS_DAEMON__TLS_KEY": "key.pem",
        variable(name): value,
        "SUBAGENTS_AGENTS__SOME__RUNTIME": "scripted",
        "SUBAGENTS_LANES__100__SLOTS": "1",
        "SUBAGENTS_AGENTS__100__MODEL": "m",
    }

    origins = {
        leaf.origin
        for leaf in load(None, environ, paths=Paths.resolve(environ)).leaves()
        if leaf.key == name
    }

    assert origins == {variable(name)}


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
