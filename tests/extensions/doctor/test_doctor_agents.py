"""What `doctor` says of each agent's program, and how to mend it."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.cli.cli_home import temporary_home, until
from tests.live_processes import is_running

from subagents.cli.doctor_check import FAIL, OK, WARN, Check
from subagents.config.paths import Paths
from subagents.config.programs import program_catalog as programs
from subagents.config.programs.program_catalog import installed, subject
from subagents.config.programs.scope_probes import Probe, ProbedClaim, ProbeVerdict
from subagents.config.settings import Agent
from subagents.extensions.conversation.versions_seen import versions_seen
from subagents.extensions.doctor import doctor_agents
from subagents.extensions.doctor.doctor_agents import DaemonLogin, agent_checks
from subagents.installation import extra_command
from subagents.ports import Runtime
from subagents.wiring import runtimes_here

GEMINI = Agent(runtime="acp", runtime_options={"agent": "gemini"})
LOGGED_IN = {"GEMINI_API_KEY": "k"}
TELLS = "case $* in *--version*) echo '{}'; exit;; esac"
ANSWERS = """read -r asked
echo '{"jsonrpc": "2.0", "id": "initialize", "result": {"protocolVersion": 1}}'
exec cat >/dev/null
"""


class Machine:
    """A PATH with nothing but what is put there."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.binaries = root / "bin"
        self.binaries.mkdir()
        self.runtimes, _ = runtimes_here(Paths.resolve({"SUBAGENTS_HOME": str(root / "h")}))
        self.environ = {"PATH": f"{self.binaries}:/usr/bin:/bin", "HOME": str(root)}

    def program(self, name: str, script: str) -> Path:
        file = self.binaries / name
        file.write_text(script)
        file.chmod(0o755)
        return file

    def speaker(self, name: str, says: str) -> Path:
        """A program that tells its version, and answers as an ACP agent."""
        return self.program(name, f"#!/bin/sh\n{TELLS.format(says)}\n{ANSWERS}")

    def npm(self, name: str, package: str, *, engines: str, size: int = 300_000) -> None:
        """A program of a package as npm installs it globally."""
        place = self.root / "lib" / "node_modules" / package
        place.mkdir(parents=True)
        (place / "package.json").write_text(
            f'{{"version": "0.61.0", "engines": {{"node": "{engines}"}}}}'
        )
        script = place / "index.js"
        script.write_text("#!/usr/bin/env node\n" + "x" * size)
        script.chmod(0o755)
        (self.binaries / name).symlink_to(script)

    def found(
        self,
        agent: Agent,
        variables: Mapping[str, str] | None = None,
        *,
        runtimes: Mapping[str, Runtime] | None = None,
        probes: Mapping[str, Probe] | None = None,
        daemon: DaemonLogin | None = None,
    ) -> list[Check]:
        known = self.runtimes if runtimes is None else runtimes
        environ = {**self.environ, **(variables or {})}
        return list(agent_checks({"a": agent}, known, probes or {}, environ, daemon=daemon))


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr(programs, "bundled_claude", lambda: None)
    return Machine(tmp_path)


@pytest.mark.requirement("doctor:agents:well")
def test_a_well_agent_is_one_line_with_its_program_and_version(machine: Machine) -> None:
    place = machine.speaker("gemini", "gemini 0.61.0")

    (check,) = machine.found(GEMINI, LOGGED_IN)

    assert (check.status, check.detail) == (OK, f"acp · {place} · gemini 0.61.0")


@pytest.mark.requirement("doctor:agents:program")
def test_a_program_that_is_not_there_is_said_with_how_to_install_it(machine: Machine) -> None:
    (check,) = machine.found(GEMINI, LOGGED_IN)

    assert (check.status, check.detail) == (FAIL, "its program 'gemini' is not there")
    assert check.fix is not None
    assert "npm i -g @google/gemini-cli" in check.fix


@pytest.mark.requirement("doctor:agents:version")
def test_a_program_that_never_says_its_version_is_left_with_all_its_children(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor_agents, "VERSION_S", 0.3)
    monkeypatch.setattr(doctor_agents, "GREETING_S", 0.3)
    pid = machine.root / "child"
    machine.program("gemini", f"#!/bin/sh\nsleep 600 & echo $! > {pid}; wait\n")

    check = machine.found(GEMINI, LOGGED_IN)[0]

    assert check.status == WARN
    assert "--version told no version within 0.3 s" in check.detail
    child = int(pid.read_text())
    until(lambda: not is_running(child), "its child is gone")


@pytest.mark.requirement("doctor:agents:login")
def test_a_program_without_a_login_is_warned_of_with_the_command_to_log_in(
    machine: Machine,
) -> None:
    machine.speaker("gemini", "0.61.0")

    _, check = machine.found(GEMINI)

    assert (check.status, check.detail) == (WARN, "nobody seems to be logged in to Gemini CLI")
    assert check.fix is not None
    assert check.fix.startswith("gemini, and choose a way to log in (or set GEMINI_API_KEY)")


@pytest.mark.requirement("doctor:agents:login")
def test_a_login_counts_that_the_agents_own_environment_names(machine: Machine) -> None:
    machine.speaker("gemini", "0.61.0")
    agent = Agent(
        runtime="acp", runtime_options={"agent": "gemini"}, env={"GEMINI_API_KEY": "mine"}
    )

    assert [check.status for check in machine.found(agent)] == [OK]


@pytest.mark.requirement("doctor:traps:node")
def test_a_node_that_is_too_old_for_the_program_is_named_with_the_one_it_needs(
    machine: Machine,
) -> None:
    machine.npm("gemini", "@google/gemini-cli", engines=">=22.3.1")
    machine.program("node", "#!/bin/sh\necho v20.20.2\n")

    (check,) = machine.found(GEMINI, LOGGED_IN)

    assert check.status == FAIL
    assert "needs Node 22.3.1, and 20.20.2 is on PATH" in check.detail

    machine.program("node", f"#!/bin/sh\n{TELLS.format('v22.10.0')}\n{ANSWERS}")
    assert [each.status for each in machine.found(GEMINI, LOGGED_IN)] == [OK]


@pytest.mark.requirement("doctor:traps:placeholder")
def test_a_placeholder_that_npm_left_is_not_taken_for_the_program(machine: Machine) -> None:
    machine.npm("openclaw", "openclaw", engines=">=24", size=30_000)
    machine.program("node", "#!/bin/sh\necho v20.20.2\n")
    agent = Agent(runtime="acp", runtime_options={"agent": "openclaw"})

    checks = machine.found(agent)

    assert checks[0].status == FAIL
    assert "is only a placeholder that npm left" in checks[0].detail


@pytest.mark.requirement("doctor:traps:root")
def test_bypassed_permissions_as_root_are_refused_before_claude_code_refuses_them(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    machine.program("claude", "#!/bin/sh\necho '2.1.330 (Claude Code)'\n")
    options: dict[str, object] = {"permission_mode": "bypassPermissions"}
    agent = Agent(runtime="claude-code", runtime_options=options)
    key = {"ANTHROPIC_API_KEY": "k"}
    lenient = {**machine.runtimes, "claude-code": machine.runtimes["scripted"]}

    (check,) = machine.found(agent, key, runtimes=lenient)

    assert (check.status, check.detail) == (
        FAIL,
        "Claude Code refuses bypassPermissions to root",
    )
    sandbox = machine.found(agent, {**key, "IS_SANDBOX": "1"}, runtimes=lenient)
    assert [each.status for each in sandbox] == [OK]


@pytest.mark.requirement("doctor:traps:relaunch")
def test_a_gemini_that_may_start_itself_again_is_warned_of(machine: Machine) -> None:
    machine.speaker("gemini", "0.61.0")
    agent = Agent(
        runtime="acp",
        runtime_options={"agent": "gemini"},
        env={"GEMINI_CLI_NO_RELAUNCH": "false"},
    )

    _, check = machine.found(agent, LOGGED_IN)

    assert check.status == WARN
    assert "GEMINI_CLI_NO_RELAUNCH is off" in check.detail


@pytest.mark.requirement("doctor:agents:options")
def test_options_that_no_attempt_could_start_with_are_said_before_one_does(
    machine: Machine,
) -> None:
    machine.program("gemini", "#!/bin/sh\necho 0.61.0\n")

    (check,) = machine.found(Agent(runtime="acp", runtime_options={"agnet": "gemini"}), LOGGED_IN)

    assert check.status == FAIL
    assert "knows no option `agnet`; did you mean `agent`?" in check.detail
    assert check.fix == "correct [agents.a.runtime_options]"


@pytest.mark.requirement("doctor:agents:scope")
def test_tools_that_nothing_can_enforce_are_said_before_a_spawn_is_refused(
    machine: Machine,
) -> None:
    agent = Agent(runtime="command", command=("sh",), tools=("Read",))

    (check,) = machine.found(agent)

    assert check.status == FAIL
    assert 'runtime "command" cannot enforce: every spawn is refused' in check.detail


@pytest.mark.requirement("doctor:agents:unserved")
def test_a_program_that_our_tools_do_not_reach_is_warned_of_with_the_way_out(
    machine: Machine,
) -> None:
    machine.speaker("cline", "3.0.65")
    agent = Agent(runtime="acp", runtime_options={"agent": "cline"})

    told = [each for each in machine.found(agent) if "none of our tools" in each.detail]

    assert [(each.status, each.fix) for each in told] == [(WARN, "subagents mcp install cline")]


@pytest.mark.requirement("doctor:agents:llm")
def test_an_llm_agent_without_its_library_or_key_is_told_what_to_install_and_set(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = Agent(runtime="llm", model="openai:gpt-6-luna")

    keyless = machine.found(agent)
    monkeypatch.setattr(programs, "package_directory", lambda module: None)
    bare = machine.found(agent, {"OPENAI_API_KEY": "k"})

    assert [each.status for each in keyless] == [OK, WARN]
    assert keyless[1].detail == "OPENAI_API_KEY is not set"
    assert [(each.status, each.fix) for each in bare] == [(FAIL, extra_command("llm"))]


@pytest.mark.requirement("doctor:agents:probe")
def test_a_broken_claim_of_the_installed_version_is_shown_and_of_another_one_is_not(
    machine: Machine,
) -> None:
    machine.program("gemini", "#!/bin/sh\necho 0.61.0\n")
    found = installed(GEMINI, machine.environ)
    broken = ProbedClaim(
        name="scope", verdict=ProbeVerdict.BROKEN, detail="the denied tool made the file"
    )
    probe = Probe(
        agent_id="a", runtime="acp", program="gemini", version="0.61.0", at_ms=1, claims=(broken,)
    )
    probes = {subject(GEMINI, found): probe}

    (check,) = machine.found(GEMINI, LOGGED_IN, probes=probes)
    machine.speaker("gemini", "the next one is 0.62.0")
    updated, unseen = machine.found(GEMINI, LOGGED_IN, probes=probes)

    assert check.status == FAIL
    assert "scope: the denied tool made the file" in check.detail
    assert updated.status == OK
    assert (unseen.status, unseen.fix) == (
        WARN,
        "let it show what it can do: subagents doctor --probe a",
    )
    assert "Gemini CLI 0.62.0 was never tried with subagents" in unseen.detail


@pytest.mark.requirement("doctor:agents:unseen")
def test_a_version_that_was_probed_here_is_warned_of_no_more(machine: Machine) -> None:
    machine.speaker("gemini", "0.62.0")
    probe = Probe("a", "acp", "gemini", "0.62.0", 1, ())

    (check,) = machine.found(
        GEMINI, LOGGED_IN, probes={subject(GEMINI, installed(GEMINI, machine.environ)): probe}
    )

    assert check.status == OK


@pytest.mark.requirement("doctor:agents:too-old")
@pytest.mark.parametrize(
    ("name", "runtime", "says", "shown"),
    [
        ("claude", "claude-code", "1.0.31 (Claude Code)", "Claude Code 1.0.31 is too old; 2.1.248"),
        ("codex", "codex", "codex-cli 0.20.0", "Codex 0.20.0 is too old; 0.100.0"),
    ],
)
def test_a_version_that_cannot_work_gets_no_tick_and_the_command_that_updates_it(
    machine: Machine, name: str, runtime: str, says: str, shown: str
) -> None:
    machine.program(name, f"#!/bin/sh\necho '{says}'\n")
    keys = {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"}

    (check,) = machine.found(Agent(runtime=runtime), keys)

    assert check.status == FAIL
    assert shown in check.detail
    assert check.fix == versions_seen()[name].update


@pytest.mark.requirement("doctor:agents:greeting")
@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("exec cat", "it only repeats what it is asked"),
        (
            "echo 'bad word' >&2; exit 3",
            "ended (exit status 3) and owed the answer to `initialize`",
        ),
        ("exec tail -f /dev/null", "owed the answer to `initialize` for 0.5 s"),
        ("exec sleep 600 >&- 2>&-", "owed the answer to `initialize` for 0.5 s"),
    ],
)
def test_a_program_that_speaks_no_protocol_is_no_agent(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, script: str, problem: str
) -> None:
    monkeypatch.setattr(doctor_agents, "GREETING_S", 0.5)
    program = machine.program("agent", f"#!/bin/sh\n{TELLS.format('1.0')}\n{script}\n")
    agent = Agent(runtime="acp", runtime_options={"command": [str(program)]})

    (check,) = machine.found(agent)

    assert check.status == FAIL
    assert problem in check.detail


@pytest.mark.requirement("doctor:agents:version")
def test_a_script_of_a_package_has_the_packages_version_and_not_its_interpreters(
    machine: Machine,
) -> None:
    machine.program("node", f"#!/bin/sh\n{TELLS.format('v24.0.0')}\n{ANSWERS}")
    place = machine.root / "node_modules" / "agent"
    place.mkdir(parents=True)
    (place / "package.json").write_text('{"version": "0.61.0"}')
    (place / "index.js").write_text("")
    options: dict[str, object] = {"agent": "gemini", "command": ["node", str(place / "index.js")]}

    (check,) = machine.found(Agent(runtime="acp", runtime_options=options), LOGGED_IN)

    assert check.detail.endswith(" · 0.61.0")


@pytest.mark.requirement("doctor:agents:unknown-runtime")
def test_an_agent_whose_runtime_cannot_be_used_is_told_which_ones_can(machine: Machine) -> None:
    (check,) = machine.found(Agent(runtime="acme"))

    assert (check.status, check.detail) == (FAIL, 'its runtime "acme" cannot be used here')
    assert check.fix is not None
    assert "command" in check.fix


@pytest.mark.requirement("plugins:doctor")
def test_doctor_names_a_plugin_that_cannot_be_loaded_and_all_else_goes_on(tmp_path: Path) -> None:
    info = tmp_path / "site" / "acme-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[subagents.runtimes]\nacme = acme_runtime:make\n")
    (tmp_path / "site" / "acme_runtime.py").write_text("raise RuntimeError('half installed')\n")
    with temporary_home(tmp_path) as home:
        home.environ["PYTHONPATH"] = str(tmp_path / "site")

        done = home.cli("doctor", "--json")
        home.ok("run", "echo works")

    (plugin,) = (each for each in done.rows("checks") if each["name"] == "plugins")
    assert done.code == 1
    assert plugin["detail"] == ("runtime 'acme' of acme is not used: RuntimeError: half installed")
    assert plugin["fix"] == "correct or uninstall acme"


@pytest.mark.requirement("doctor:agents:login")
@pytest.mark.parametrize(
    ("here", "at_daemon", "by", "says"),
    [
        pytest.param({}, set(), None, "nobody seems to be logged in", id="nowhere"),
        pytest.param({}, {"GEMINI_API_KEY"}, None, "", id="at the daemon: so have all runs"),
        pytest.param({}, {"OPENAI_API_KEY"}, "codex", "nobody seems", id="another program's"),
        pytest.param(LOGGED_IN, {"GEMINI_API_KEY"}, None, "", id="in both"),
        pytest.param(LOGGED_IN, None, None, "", id="here, and no daemon runs"),
        pytest.param(
            LOGGED_IN,
            set(),
            "codex",
            "GEMINI_API_KEY is set here and not in the daemon, which codex started: only runs",
            id="here alone, and it is known why",
        ),
        pytest.param(LOGGED_IN, set(), None, "not in the daemon: only runs", id="here alone"),
    ],
)
def test_it_is_said_whose_runs_are_logged_in(
    machine: Machine, here: dict[str, str], at_daemon: set[str] | None, by: str | None, says: str
) -> None:
    machine.speaker("gemini", "gemini 0.61.0")
    daemon = None if at_daemon is None else DaemonLogin(frozenset(at_daemon), by)
    warned = [
        each.detail for each in machine.found(GEMINI, here, daemon=daemon) if each.status == WARN
    ]
    assert bool(warned) == bool(says)
    assert says in "".join(warned)


@pytest.mark.requirement("doctor:agents:login")
def test_a_login_in_a_file_is_everybodys(machine: Machine) -> None:
    machine.speaker("gemini", "gemini 0.61.0")
    file = machine.root / ".gemini" / "oauth_creds.json"
    file.parent.mkdir()
    file.write_text("{}")
    daemon = DaemonLogin(frozenset(), "codex")
    assert [each.status for each in machine.found(GEMINI, LOGGED_IN, daemon=daemon)] == [OK]
