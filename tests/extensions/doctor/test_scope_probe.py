"""`doctor --probe`: what an adapter claims is tried, and what was found decides on scopes.

The agents here are plugins over shell scripts: one keeps to a scope, one only says that it does.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
import pytest
from tests.cli.cli_home import Done, Home, temporary_home

MODULE: Final = """
from subagents.domain.run.spec import Abilities
from subagents.domain.run.values import replace
from subagents.runtimes.command import CommandRuntime

class Scoped(CommandRuntime):
    abilities = Abilities(survives_daemon=True, usage=True, scope_tools=True)

    def __init__(self, host, name, keeps):
        super().__init__(host.root, host.clock, host.off_loop)
        self._name, self._keeps = name, keeps

    @property
    def name(self):
        return self._name

    def check_scope(self, options, tools, deny):
        pass

    async def start(self, launch):
        denied = "yes" if self._keeps and launch.tools_deny else ""
        env = {**launch.options.get("env", {}), "DENIED": denied}
        return await super().start(replace(launch, options={**launch.options, "env": env}))

def honest(host):
    return Scoped(host, "honest", keeps=True)

def liar(host):
    return Scoped(host, "liar", keeps=False)
"""
WORKER: Final = r"""
file=$(grep -o 'canary-[0-9a-f]*' "$SUBAGENTS_PROMPT_FILE" | head -1)
word=$(grep -o 'plum[0-9a-f]*' "$SUBAGENTS_PROMPT_FILE" | head -1)
pwd >> "$WHERE"
[ -n "$LAZY" ] || [ -n "$DENIED" ] || touch "$file"
echo '{"subagents": "usage", "tokensIn": 7, "tokensOut": 3, "costUsd": 0.01}'
echo "$word"
"""
ENTRIES: Final = (
    "[subagents.runtimes]\nhonest = probed_runtime:honest\nliar = probed_runtime:liar\n"
)


def install(root: Path, *, version: str) -> None:
    for old in root.glob("site/probed-*.dist-info/METADATA"):
        old.unlink()
        (old.parent / "entry_points.txt").unlink()
        old.parent.rmdir()
    info = root / "site" / f"probed-{version}.dist-info"
    info.mkdir(parents=True)
    (root / "site" / "probed_runtime.py").write_text(MODULE)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: probed\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(ENTRIES)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    install(tmp_path, version="1.0")
    with temporary_home(tmp_path) as found:
        worker = found.root / "worker.sh"
        worker.write_text(WORKER)
        agent = 'command = ["sh", "{}"]\nstdin = "prompt"\nenv = {{ WHERE = "{}", LAZY = "{}" }}\n'
        where = found.root / "where"
        texts = [
            f'[agents.{name}]\nruntime = "{runtime}"\n' + agent.format(worker, where, lazy)
            for name, runtime, lazy in (
                ("honest", "honest", ""),
                ("liar", "liar", ""),
                ("lazy", "liar", "yes"),
            )
        ]
        (found.work / "subagents.toml").write_text("\n".join(texts))
        found.environ["PYTHONPATH"] = str(found.root / "site")
        yield found


@pytest.mark.requirement("agents:show:abilities")
def test_an_agents_card_says_what_its_runtime_can_do_and_whether_a_scope_was_tried(
    home: Home,
) -> None:
    plain = home.ok("agents", "command").out
    scoped = home.ok("agents", "honest").out

    assert "can:          tells tokens or cost, outlives the daemon" in plain
    assert "tool scope:   cannot be enforced: a spawn that asks for one is refused" in plain
    assert "not tried (subagents doctor --probe honest)" in scoped


def claims(done: Done) -> dict[str, str]:
    return {each["name"]: each["verdict"] for each in done.rows("claims")}


@pytest.mark.requirement("probe:scope:proven")
def test_a_worker_that_keeps_to_its_scope_is_proven_and_its_scoped_spawns_are_not_warned_of(
    home: Home,
) -> None:
    before = home.cli("spawn", "hello", "--agent", "honest", "--deny-tool", "shell", "--json")
    done = home.cli("doctor", "--probe", "honest", "--yes", "--json")
    after = home.cli("spawn", "hello", "--agent", "honest", "--deny-tool", "shell", "--json")

    assert done.code == 0, done
    assert claims(done) == {"works": "proven", "scope": "proven", "usage": "proven"}
    assert (done.json["runs"], done.json["tokens"], done.json["costUsd"]) == (2, 20, 0.02)
    (warning,) = msgspec.convert(before.json["warnings"], list[str])
    assert warning == (
        "that honest keeps to a tool scope was not tried with the version that is installed: "
        "subagents doctor --probe honest"
    )
    assert not after.json.get("warnings")
    shown = home.ok("agents", "honest").out
    assert "tool scope:   enforced, and proven: it made the file when it was allowed" in shown
    assert "works proven, scope proven, usage proven" in shown


@pytest.mark.requirement("probe:scope:broken")
def test_a_denied_tool_that_worked_refuses_every_scope_until_there_is_another_version(
    home: Home,
) -> None:
    done = home.cli("doctor", "--probe", "liar", "--yes", "--json")
    refused = home.cli("spawn", "hello", "--agent", "liar", "--deny-tool", "shell", "--json")
    unscoped = home.cli("spawn", "hello", "--agent", "liar", "--json")
    shown = home.cli("doctor")

    assert done.code == 1
    assert claims(done)["scope"] == "broken"
    assert refused.code != 0
    assert "the probe of agent 'liar' found that liar does not keep to a tool scope" in refused.out
    assert "denied it made the file all the same" in refused.out
    assert "subagents doctor --probe liar" in refused.out
    assert unscoped.code == 0
    assert "its probe found: scope: with shell, write, edit, agents denied" in shown.out
    card = home.ok("agents", "liar").out
    assert "tool scope:   broken, so every scope is refused" in card

    home.ok("down", "--yes")
    install(home.root, version="1.1")

    again = home.cli("spawn", "hello", "--agent", "liar", "--deny-tool", "shell", "--json")
    assert again.code == 0, again
    assert "was not tried with the version that is installed" in str(again.json["warnings"])


@pytest.mark.requirement("probe:scope:open")
def test_a_worker_that_never_tries_proves_nothing_and_unproves_nothing(home: Home) -> None:
    done = home.cli("doctor", "--probe", "lazy", "--yes", "--json")

    assert claims(done) == {"works": "proven", "scope": "open", "usage": "proven"}
    assert done.code == 0
    allowed = home.cli("spawn", "hello", "--agent", "lazy", "--deny-tool", "shell", "--json")
    assert "was not tried" in str(allowed.json["warnings"])


@pytest.mark.requirement("probe:apart")
def test_a_probe_works_in_a_temporary_directory_and_leaves_nothing_but_its_finding(
    home: Home,
) -> None:
    def everything() -> set[Path]:
        skipped = ("__pycache__", ".pyc")
        return {
            path for path in home.root.rglob("*") if not any(word in str(path) for word in skipped)
        }

    before = everything()
    home.cli("doctor", "--probe", "honest", "--yes")

    made = {str(path.relative_to(home.root)) for path in everything() - before}
    assert {name for name in made if not name.startswith("h")} == {"where"}
    assert "h/state/probes.json" in made
    assert not [name for name in made if name.endswith(".db")]
    places = (home.root / "where").read_text().split()
    assert places
    assert not any(Path(place).exists() for place in places), "the directory is gone"


@pytest.mark.requirement("probe:asked")
def test_nobody_to_ask_and_no_flag_runs_nothing(home: Home) -> None:
    done = home.cli("doctor", "--probe", "honest")

    assert done.code == 2
    assert "Run 2 tiny tasks with honest (honest), using its own model and login?" in done.err
    assert "--yes" in done.err
    assert not (home.root / "where").exists()


@pytest.mark.requirement("probe:refused")
@pytest.mark.parametrize(
    ("agent", "env", "code", "text"),
    [
        ("command", {}, 2, 'runtime "command" claims nothing that can be probed'),
        ("main", {}, 2, "agents.main.runtime is not set"),
        ("honets", {}, 3, "did you mean 'honest'?"),
        ("honest", {"SUBAGENTS_RUN_ID": "r-1"}, None, "a worker cannot probe an agent"),
    ],
)
def test_what_cannot_be_probed_is_refused_with_the_reason(
    agent: str, env: dict[str, str], code: int | None, text: str, home: Home
) -> None:
    done = home.cli("doctor", "--probe", agent, "--yes", env=env)

    assert done.code == code if code is not None else done.code != 0
    assert text in done.err
    assert not (home.root / "where").exists()


@pytest.mark.requirement("probe:state", "permissions:for-agent")
def test_files_of_findings_and_answers_that_cannot_be_read_are_named_by_doctor(home: Home) -> None:
    state = home.root / "h" / "state"
    state.mkdir(parents=True, mode=0o700)
    files = {"probes": "probes.json", "allowed calls": "allowed-calls.json"}
    for file in files.values():
        (state / file).write_text("{")

    found = {each["name"]: each for each in home.cli("doctor", "--json").rows("checks")}

    for name, file in files.items():
        assert found[name]["status"] == "warn"
        assert f"cannot read {os.path.realpath(state / file)}" in found[name]["detail"]
