"""``doctor`` sees what is wrong and says how to mend it."""

import sys
from pathlib import Path

import pytest
from tests.cli.cli_home import Home
from tests.config.config_homes import ConfigHome

from subagents.config.paths import Paths
from subagents.extensions.doctor import doctor


@pytest.mark.requirement("cli:config", "cli:doctor")
def test_a_config_typo_is_named_with_its_mend_by_validate_and_doctor(home: Home) -> None:
    file = home.work / "subagents.toml"
    file.write_text("[agents.defaults.subagents]\nmax_spawn_dept = 2\n")
    done = home.cli("config", "--check")
    assert done.code == 2
    assert "max_spawn_dept" in done.err
    assert "max_spawn_depth" in done.err
    doctor = home.cli("doctor", "--json")
    assert doctor.code == 1
    checks = {each["name"]: each for each in doctor.rows("checks")}
    assert checks["config"]["status"] == "fail"
    assert str(file.resolve()) in checks["config"]["detail"]
    assert "max_spawn_depth" in f"{checks['config']['detail']}{checks['config']['fix']}"


@pytest.mark.requirement("cli:doctor")
def test_doctor_sees_the_daemon_and_a_directory_open_to_others(shared: Home) -> None:
    pid = shared.ok("up", "--json").json["daemonPid"]
    state = shared.root / "h" / "state"
    state.chmod(0o755)
    try:
        done = shared.ok("doctor", "--json")
    finally:
        state.chmod(0o700)
    assert done.json["daemonPid"] == pid
    checks = {each["name"]: each for each in done.rows("checks")}
    assert checks["state"]["status"] == "warn"
    assert checks["state"]["fix"] == f"chmod 700 {state}"
    assert checks["database"]["status"] == "ok"
    kept_by = ("each worker in a cgroup of its own", "shims adopt what workers leave behind")
    assert checks["containment"]["detail"].startswith(kept_by)


@pytest.mark.requirement("cli:doctor", "daemon:last-good-config")
def test_doctor_says_why_a_daemon_with_a_broken_file_accepts_no_runs(home: Home) -> None:
    config = Paths.resolve(home.env()).config_file
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("")
    home.ok("up")
    home.ok("down", "--yes")
    config.write_text("[agents.other]\nruntim = 'command'\n")
    home.ok("up")
    checks = {each["name"]: each for each in home.cli("doctor", "--json").rows("checks")}
    assert "agents.other.runtim" in checks["accepting"]["detail"]


@pytest.mark.requirement("doctor:codex-as-a-tool")
def test_doctor_offers_codex_as_a_worker_where_it_was_a_tool(home: Home) -> None:
    entry = home.work / ".mcp.json"
    entry.write_text('{"mcpServers": {"codex": {"command": "codex", "args": ["mcp-server"]}}}')

    checks = {each["name"]: each for each in home.cli("doctor", "--json").rows("checks")}

    assert checks["codex as a tool"]["status"] == "warn"
    assert f"{entry.resolve()}: server 'codex'" in checks["codex as a tool"]["detail"]
    assert "subagents mcp install claude" in checks["codex as a tool"]["fix"]
    entry.unlink()
    assert "codex as a tool" not in {
        each["name"] for each in home.cli("doctor", "--json").rows("checks")
    }


@pytest.mark.requirement("config:ownership")
def test_doctor_names_the_file_that_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = ConfigHome(tmp_path)
    home.project.write_text("[agents.defaults.subagents]\nmax_concurrent = 9\n")
    home.project.chmod(0o666)
    monkeypatch.chdir(home.cwd)
    check = doctor._config(home.paths)
    assert check.status == "warn"
    assert f"{home.project} is ignored: others can write it (mode 0666)" in check.detail


@pytest.mark.requirement("cli:doctor")
def test_doctor_says_how_agents_come_to_find_a_program_that_is_not_on_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "subagents"
    monkeypatch.setattr(sys, "argv", [str(program)])
    monkeypatch.setenv("PATH", "/nowhere")
    check = doctor._program()
    assert check.status == "warn"
    assert f'export PATH="{tmp_path}:$PATH"' in str(check.fix)

    program.touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert (doctor._program().status, doctor._program().detail) == ("ok", str(program))
