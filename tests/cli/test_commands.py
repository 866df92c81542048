"""Real ``subagents`` commands against a real daemon: what is printed where, and the exit code."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.cli.cli_home import Home, temporary_home, until


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """A fresh home; its daemon, if any, is stopped at the end."""
    with temporary_home(tmp_path) as found:
        yield found


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A home with a running daemon, for tests that only add runs."""
    with temporary_home(tmp_path_factory.mktemp("shared")) as found:
        found.environ["SUBAGENTS_AGENTS__DEFAULTS__SUBAGENTS__MAX_CHILDREN_PER_AGENT"] = "100"
        found.ok("up")
        yield found


def gate(name: str) -> str:
    """Shell that goes on once a file is there; the test decides when, however slow the machine."""
    return f"until test -e {name}; do sleep 0.05; done"


# -- run, spawn, wait -----------------------------------------------------------------------------


@pytest.mark.requirement("cli:run")
def test_run_prints_the_result_on_stdout_and_all_else_on_stderr(shared: Home) -> None:
    done = shared.cli("run", "echo hello; echo noise >&2")
    assert (done.code, done.out) == (0, "hello\n")
    assert ": ok · " in done.err


@pytest.mark.requirement("cli:run", "cli:exit-codes")
def test_run_ends_with_5_and_the_reason_when_the_work_fails(shared: Home) -> None:
    done = shared.cli("run", "echo partly; echo broken >&2; exit 3")
    assert (done.code, done.out) == (5, "partly\n")
    assert "exit code 3: broken" in done.err
    assert "see: subagents why r-" in done.err


@pytest.mark.requirement("cli:run", "cli:exit-codes", "cli:contract-flags")
def test_run_ends_with_6_and_the_failed_check_when_the_contract_is_not_met(shared: Home) -> None:
    flags = ("--verify", "out.json", "--min-items", "3", "--verify", "other", "--min-bytes", "1")
    done = shared.cli("run", "echo '[1, 2]' > out.json; echo x > other", *flags)
    assert done.code == 6
    assert "verified 1/2" in done.err
    assert "out.json: File out.json has 2 items, minimum 3 required" in done.err


@pytest.mark.requirement("cli:run", "cli:json")
def test_run_as_json_is_one_document_with_the_proof(shared: Home) -> None:
    done = shared.cli("run", "echo '{\"a\": 1}' > p.json", "--verify", "p.json", "--json")
    assert done.code == 0
    assert list(done.json) == ["completed", "pending", "errors"]
    assert (done.rows("pending"), done.rows("errors")) == ([], [])
    (item,) = done.rows("completed")
    assert item["outcome"] == {"status": "ok", "reason": None, "error": None}
    assert item["verification"]["status"] == "passed"


@pytest.mark.requirement("cli:task")
def test_a_task_may_come_from_stdin_or_as_a_command_line(shared: Home) -> None:
    assert shared.ok("run", "-", stdin="echo from stdin\n").out == "from stdin\n"
    assert shared.ok("run", "--", "printf", "%s|", "a b", "$HOME").out == "a b|$HOME|\n"


@pytest.mark.requirement("cli:run")
def test_run_works_where_it_is_called(shared: Home) -> None:
    assert shared.ok("run", "pwd -P").out == f"{shared.work.resolve()}\n"
    (shared.work / "below").mkdir(exist_ok=True)
    assert shared.ok("run", "pwd -P", "--cwd", "below").out.endswith("/below\n")


@pytest.mark.requirement("cli:spawn")
def test_spawn_prints_the_id_alone_and_its_receipt_as_json(shared: Home) -> None:
    assert shared.spawn("true").startswith("r-")
    receipt = shared.ok("spawn", "true", "--label", "receipt", "--json").json
    assert receipt["status"] == "accepted"
    assert str(receipt["childSessionKey"]).startswith("agent:command:subagent:")
    assert receipt["label"] == "receipt"


@pytest.mark.requirement("cli:spawn")
def test_the_same_idempotency_key_gives_the_same_run(shared: Home) -> None:
    first = shared.spawn("true", "--idempotency-key", "once")
    again = shared.cli("spawn", "true", "--idempotency-key", "once")
    assert again.out.strip() == first
    assert "nothing was started" in again.err


@pytest.mark.requirement("cli:wait", "cli:exit-codes")
def test_wait_ends_with_8_at_its_timeout_and_with_5_after_a_cancel(shared: Home) -> None:
    run = shared.spawn("sleep 60", "--label", "slow")
    done = shared.cli("wait", "slow", "--timeout", "200ms", "--json")
    assert done.code == 8
    assert [each["runId"] for each in done.rows("pending")] == [run]
    assert shared.ok("cancel", "slow").out == f"{run}: cancelling\n"
    done = shared.cli("wait", run, "--json")
    assert done.code == 5
    assert done.rows("completed")[0]["outcome"]["status"] == "cancelled"


@pytest.mark.requirement("cli:wait")
def test_wait_any_is_content_with_the_first(shared: Home) -> None:
    slow = shared.spawn("sleep 60")
    quick = shared.spawn("echo quick")
    done = shared.cli("wait", slow, quick, "--any", "--json")
    assert done.code == 0
    assert [each["runId"] for each in done.rows("completed")] == [quick]
    shared.ok("cancel", slow)


@pytest.mark.requirement("cli:wait", "cli:exit-codes")
def test_waiting_for_an_unknown_run_names_it_and_ends_with_3(shared: Home) -> None:
    done = shared.cli("wait", "no-such-run")
    assert done.code == 3
    assert "no-such-run" in done.err


@pytest.mark.requirement("cli:plan")
def test_a_plan_runs_in_the_order_of_its_dependencies(shared: Home) -> None:
    (shared.work / "p.toml").write_text(
        '[[runs]]\nlabel = "first"\ntask = "echo 1 > order"\n'
        '[[runs]]\nlabel = "second"\ntask = "echo 2 >> order; cat order"\ndepends_on = "first"\n'
    )
    done = shared.ok("plan", "run", "p.toml", "--json")
    results = {each["label"]: each["result"] for each in done.rows("completed")}
    assert results["second"].split() == ["1", "2"]


@pytest.mark.requirement("cli:plan", "cli:exit-codes")
def test_a_plan_with_one_wrong_run_starts_none(shared: Home) -> None:
    (shared.work / "bad.json").write_text(
        '[{"task": "touch started"}, {"task": "t", "dependsOn": "nowhere"}]'
    )
    done = shared.cli("plan", "run", "bad.json")
    assert done.code == 2
    assert "nowhere" in done.err
    assert not (shared.work / "started").exists()


# -- questions, messages --------------------------------------------------------------------------


@pytest.mark.requirement("cli:answer", "cli:worker-verbs")
def test_a_workers_question_reaches_whoever_waits_and_the_answer_reaches_the_worker(
    shared: Home,
) -> None:
    task = "echo got $(subagents ask 'which branch?' --option main --option dev --timeout 30s)"
    waiting = shared.start("run", task, "--label", "asker")
    try:
        assert waiting.stderr is not None
        lines = iter(waiting.stderr.readline, "")
        assert any("asker asks: which branch? [main / dev]" in line for line in lines)
        command = next(line for line in lines if "answer with:" in line)
        items = shared.ok("attention", "--json").rows("items")
        assert "which branch?" in [each["text"] for each in items]
        request = command.split()[-2]
        assert shared.ok("answer", request, "dev").out == f"{request}: answered\n"
        out, _ = waiting.communicate(timeout=20)
        assert (waiting.returncode, out) == (0, "got dev\n")
    finally:
        waiting.kill()
        waiting.communicate()


@pytest.mark.requirement("cli:worker-verbs", "cli:exit-codes")
def test_a_question_nobody_answers_ends_with_its_default_or_with_8(shared: Home) -> None:
    default = shared.ok("run", "subagents ask 'sure?' --timeout 1s --default yes; echo $?")
    assert default.out == "yes\n0\n"
    none = shared.ok("run", "subagents ask 'sure?' --timeout 1s; echo $?")
    assert none.out == "8\n"


@pytest.mark.requirement("cli:worker-verbs")
def test_progress_and_report_of_a_worker_are_on_record(shared: Home) -> None:
    task = "subagents progress 'reading' 40; subagents report 'all read' --artifact a.md=notes"
    run = shared.spawn(task)
    (row,) = shared.ok("wait", run, "--json").rows("completed")
    assert row["report"]["artifacts"] == [{"path": "a.md", "description": "notes"}]
    assert "40% reading" in shared.ok("show", run).out


@pytest.mark.requirement("cli:worker-verbs", "cli:bad-input")
def test_a_worker_verb_outside_a_run_says_what_is_missing(shared: Home) -> None:
    done = shared.cli("report", "done", "--json")
    assert done.code == 2
    assert done.json["message"] == "this is for workers: SUBAGENTS_RUN_ID is not set"


@pytest.mark.requirement("cli:inbox")
def test_a_message_is_shown_once_and_what_was_waited_for_not_again(home: Home) -> None:
    home.ok("up")
    waited = home.spawn("echo one")
    home.ok("wait", waited)
    assert home.ok("inbox", "--json").rows("messages") == []
    run = home.spawn("echo two")
    until(lambda: home.field(run, "outcome"), "the run has ended")
    first = home.ok("inbox", "--json").rows("messages")
    assert [each["runId"] for each in first] == [run]
    assert home.ok("inbox", "--json").rows("messages") == []
    everything = home.ok("inbox", "--all", "--json").rows("messages")
    assert {each["runId"] for each in everything} == {waited, run}


# -- looking --------------------------------------------------------------------------------------


LOOKS = [
    "list",
    "list phase:completed",
    "list tree:last",
    "tree",
    "tree last",
    "status last",
    "show last",
    "result last",
    "log last",
    "timeline last",
    "why last",
    "attention",
    "agents list",
    "agents show command",
    "agents stats",
    "agents stats command --by tag --days 1",
    "agents suggest",
    "doctor",
    "config show",
    "config validate",
    "config schema",
    "db check",
    "inbox --all",
    "up",
]


@pytest.fixture(scope="module")
def seen(shared: Home) -> Home:
    """The shared home with a run that ended."""
    shared.ok("run", "echo seen", "--label", "seen")
    return shared


@pytest.mark.requirement("cli:json")
@pytest.mark.parametrize("line", LOOKS)
def test_every_look_is_one_json_document_and_also_plain_text(seen: Home, line: str) -> None:
    shared = seen
    done = shared.ok(*line.split(), "--json")
    assert done.json
    assert done.out.count("\n") == 1
    plain = shared.ok(*line.split())
    assert plain.out or "Nothing needs you" in plain.err
    assert "\x1b" not in plain.out + plain.err


@pytest.mark.requirement("cli:look")
def test_what_a_run_did_can_be_read_step_by_step(shared: Home) -> None:
    run = shared.spawn("echo out; echo err >&2; exit 1", "--retry", "1", "--retry-delay", "10ms")
    shared.cli("wait", run)
    said = shared.ok("log", run, "--type", "text").out.splitlines()
    assert sorted(line.split()[1] for line in said) == ["err", "err", "out", "out"]
    assert len(shared.ok("log", run, "--type", "text", "--attempt", "1").out.splitlines()) == 2
    assert shared.ok("result", run).out == "out\n"
    timeline = shared.ok("timeline", run).out
    assert "Spawned" in timeline.splitlines()[0]
    assert "+0.000s" in timeline.splitlines()[0]
    assert "RetryDue" in timeline or "retry" in timeline.lower()
    why = shared.ok("why", run).out
    assert "attempt 1" in why
    assert "attempt 2" in why


@pytest.mark.requirement("cli:look")
def test_a_log_can_be_followed_over_a_retry_to_the_end(shared: Home) -> None:
    task = f"echo one; {gate('followed')}; echo two; test -e again || {{ touch again; exit 1; }}"
    run = shared.spawn(task, "--retry", "1", "--retry-delay", "10ms")
    following = shared.start("log", run, "--follow", "--type", "text")
    try:
        assert following.stdout is not None
        assert following.stdout.readline().endswith("   one\n")
        (shared.work / "followed").touch()
        rest, _ = following.communicate(timeout=30)
    finally:
        following.kill()
        following.communicate()
    assert [line.split()[-1] for line in rest.splitlines()] == ["two", "one", "two"]


@pytest.mark.requirement("cli:selectors")
def test_several_runs_are_cancelled_by_phase_only_when_that_was_said(home: Home) -> None:
    home.ok("up")
    runs = {home.spawn("sleep 60") for _ in range(2)}
    until(lambda: all(home.field(run, "phase") == "running" for run in runs), "both run")
    refused = home.cli("cancel", "phase:running")
    assert refused.code == 2
    assert "Cancel 2 runs?" in refused.err
    done = home.ok("cancel", "phase:running", "--yes", "--json")
    assert {each["runId"] for each in done.rows("runs")} == runs


# -- refusals -------------------------------------------------------------------------------------


USAGE = [
    (["run"], "the task is missing"),
    (["run", "x", "--bogus"], "Unknown option: --bogus."),
    (["run", "x", "--timeout", "soon"], "--timeout must be a duration"),
    (["run", "x", "--label", "y" * 81], "label must have at most 80 characters"),
    (["run", "x", "--retry", "-1"], "--retry must be 0 to 100, not -1"),
    (["run", "x", "--retry", "many"], "--retry"),
    (["run", "x", "--backoff", "never"], "--backoff"),
    (["run", "x", "--min-items", "1"], "--min-items"),
    (["run", "x", "--cwd", "nowhere"], "nowhere"),
    (["run", "x" * 262_145, "--label", "big"], "task must be at most 262144 bytes"),
    (["list", "phase:jumping"], "there is no phase 'jumping'"),
    (["show", "phase:running"], "this command takes one"),
    (["status"], "name at least one run"),
    (["bogus"], "there is no command 'bogus'"),
    (["lst"], "did you mean 'list'?"),
    (["plan", "rn", "x"], "there is no command plan 'rn'"),
]


@pytest.mark.requirement("cli:bad-input", "cli:exit-codes", "cli:json")
@pytest.mark.parametrize(("argv", "message"), USAGE, ids=[message for _, message in USAGE])
def test_bad_input_ends_with_2_and_names_the_field(
    shared: Home, argv: list[str], message: str
) -> None:
    if len("".join(argv)) > 100_000:
        done = shared.cli(argv[0], "-", *argv[2:], "--json", stdin=argv[1])
        assert done.code == 2
        assert "task must be at most 262144 bytes" in str(done.json["message"])
        return
    done = shared.cli(*argv, "--json")
    assert done.code == 2
    assert list(done.json) == ["code", "message", "details", "retryable", "hint"]
    assert message in str(done.json["message"])


@pytest.mark.requirement("cli:bad-input", "cli:json")
def test_without_json_an_error_is_on_stderr_with_a_way_out_and_stdout_is_empty(
    shared: Home,
) -> None:
    done = shared.cli("lst")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "subagents: there is no command 'lst'; did you mean 'list'?\n  hint: subagents --help\n"
    )


@pytest.mark.requirement("cli:bad-input")
def test_arguments_that_are_no_text_are_refused(shared: Home) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "subagents", "run", b"echo \xff"],
        capture_output=True,
        env=shared.env(),
        timeout=30,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.decode().startswith("subagents: not valid UTF-8")


@pytest.mark.requirement("cli:exit-codes")
@pytest.mark.parametrize("command", ["status", "show", "result", "log", "why", "cancel", "retry"])
def test_an_unknown_run_ends_with_3(shared: Home, command: str) -> None:
    done = shared.cli(command, "no-such-run", "--json")
    assert done.code == 3
    assert done.json["code"] == "not_found"


@pytest.mark.requirement("cli:exit-codes")
def test_a_refused_spawn_ends_with_4_and_names_the_key_to_change(shared: Home) -> None:
    key = "SUBAGENTS_AGENTS__DEFAULTS__SUBAGENTS__MAX_CHILDREN_PER_AGENT"
    run = shared.spawn("sleep 60")
    done = shared.cli("run", "true", env={key: "1"})
    assert done.code == 4
    assert "agents.defaults.subagents.max_children_per_agent" in done.err
    shared.ok("cancel", run)


# -- interruptions --------------------------------------------------------------------------------


@pytest.mark.requirement("cli:interrupt", "cli:exit-codes")
def test_ctrl_c_leaves_the_run_alone_and_says_how_to_come_back(shared: Home) -> None:
    waiting = shared.start("run", "sleep 60", "--label", "left")
    try:
        until(lambda: shared.cli("status", "left").code == 0, "the run is there")
        run = str(shared.field("left", "runId"))
        waiting.send_signal(signal.SIGINT)
        out, err = waiting.communicate(timeout=20)
    finally:
        waiting.kill()
        waiting.communicate()
    assert (waiting.returncode, out) == (130, "")
    assert f"subagents wait {run}" in err
    assert "Traceback" not in err
    assert shared.field(run, "outcome") is None
    shared.ok("cancel", run)


@pytest.mark.requirement("cli:broken-pipe")
def test_a_reader_that_goes_away_is_no_news(shared: Home) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as stdout:
        done = subprocess.run(
            [sys.executable, "-m", "subagents", "config", "schema"],
            stdout=stdout,
            stderr=subprocess.PIPE,
            env=shared.env(),
            timeout=30,
            check=False,
        )
    assert done.stderr == b""
    assert done.returncode == 141


# -- the daemon's life ----------------------------------------------------------------------------


@pytest.mark.requirement("client:start", "cli:daemon")
def test_ten_commands_at_once_start_one_daemon(home: Home) -> None:
    started = [home.start("up", "--json") for _ in range(10)]
    try:
        answers = [each.communicate(timeout=40) for each in started]
    finally:
        for each in started:
            each.kill()
    documents = [msgspec.json.decode(out, type=dict[str, object]) for out, _ in answers]
    assert len({each["daemonPid"] for each in documents}) == 1
    assert [each["started"] for each in documents].count(True) == 1


@pytest.mark.requirement("cli:exit-codes", "cli:daemon")
def test_looking_starts_no_daemon_and_ends_with_7(home: Home) -> None:
    done = home.cli("list", "--json")
    assert done.code == 7
    assert done.json["code"] == "daemon_unreachable"
    assert done.json["retryable"] is True
    assert home.ok("doctor", "--json").json["daemonPid"] is None
    assert home.ok("down", "--yes", "--json").json == {"stopped": False, "daemonPid": None}


@pytest.mark.requirement("cli:daemon")
def test_run_starts_the_daemon_and_down_stops_it(home: Home) -> None:
    assert home.ok("run", "echo first").out == "first\n"
    pid = home.pid()
    assert home.ok("down", "--yes", "--json").json == {"stopped": True, "daemonPid": pid}
    assert home.ok("doctor", "--json").json["daemonPid"] is None
    assert home.cli("list").code == 7


@pytest.mark.requirement("cli:daemon", "cli:confirm")
def test_down_with_open_runs_needs_a_yes_and_the_work_goes_on_without_a_daemon(home: Home) -> None:
    run = home.spawn(f"{gate('stopped')}; echo went on")
    until(lambda: home.field(run, "phase") == "running", "it runs")
    refused = home.cli("down")
    assert refused.code == 2
    assert "1 run is active" in refused.err
    home.ok("down", "--yes")
    (home.work / "stopped").touch()
    assert home.ok("wait", run).out == "went on\n"


@pytest.mark.requirement("cli:survives-daemon")
def test_a_wait_outlives_a_killed_daemon_and_brings_it_back(home: Home) -> None:
    waiting = home.start("run", f"{gate('killed')}; echo survived", "--label", "survivor")
    try:
        until(lambda: home.cli("status", "survivor").code == 0, "the run is there")
        until(lambda: home.field("survivor", "phase") == "running", "it runs")
        home.kill_daemon()
        (home.work / "killed").touch()
        out, err = waiting.communicate(timeout=40)
    finally:
        waiting.kill()
        waiting.communicate()
    assert (waiting.returncode, out) == (0, "survived\n"), err
    assert "was restarted" in err


@pytest.mark.requirement("cli:survives-daemon", "cli:worker-verbs")
def test_a_question_outlives_a_killed_daemon(home: Home) -> None:
    run = home.spawn("echo got $(subagents ask 'still there?' --timeout 60s)")
    until(lambda: home.field(run, "pendingRequestCount") == 1, "the question is there")
    home.kill_daemon()
    home.ok("up")
    home.ok("answer", run, "yes")
    assert home.ok("wait", run).out == "got yes\n"


@pytest.mark.requirement("cli:daemon")
def test_any_command_brings_a_crashed_daemon_back(home: Home) -> None:
    run = home.spawn("echo kept")
    home.ok("wait", run)
    home.kill_daemon()
    done = home.cli("result", run)
    assert (done.code, done.out) == (0, "kept\n")
    assert "The daemon had crashed" in done.err


@pytest.mark.requirement("client:start")
def test_a_daemon_that_cannot_start_is_said_at_once_with_its_reason(home: Home) -> None:
    config = home.root / "h" / "config" / "subagents.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[agents.x]\nruntim = 'command'\n")
    done = home.cli("up", "--json")
    assert done.code == 7
    assert "did not start and ended with status" in str(done.json["message"])
    assert "runtim" in str(done.json["details"])


# -- set-up ---------------------------------------------------------------------------------------


@pytest.mark.requirement("cli:init", "cli:confirm")
def test_init_writes_a_file_that_loads_and_replaces_one_only_when_told(home: Home) -> None:
    file = home.work / "subagents.toml"
    assert home.ok("init", "--json").json["file"] == str(file.resolve())
    assert home.ok("config", "validate").out == f"valid: {file.resolve()}\n"
    file.write_text("# mine\n")
    refused = home.cli("init")
    assert refused.code == 2
    assert file.read_text() == "# mine\n"
    home.ok("init", "--yes")
    assert "[agents.command]" in file.read_text()
    assert (home.work / "subagents.toml.bak").read_text() == "# mine\n"


@pytest.mark.requirement("cli:config", "cli:doctor")
def test_a_config_typo_is_named_with_its_mend_by_validate_and_doctor(home: Home) -> None:
    file = home.work / "subagents.toml"
    file.write_text("[agents.defaults.subagents]\nmax_spawn_dept = 2\n")
    done = home.cli("config", "validate")
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


@pytest.mark.requirement("cli:db")
def test_the_database_can_be_copied_while_the_daemon_runs_and_never_over_a_file(
    shared: Home,
) -> None:
    target = shared.work / "copy.db"
    shared.ok("run", "true")
    assert shared.ok("db", "backup", str(target), "--json").json["bytes"] == target.stat().st_size
    assert target.stat().st_mode & 0o777 == 0o600
    again = shared.cli("db", "backup", str(target))
    assert again.code == 2
    assert "exists" in again.err


@pytest.mark.requirement("cli:service")
def test_the_service_leaves_workers_alone_and_needs_systemd(home: Home, tmp_path: Path) -> None:
    unit = home.ok("service", "install", "--dry-run").out
    assert "KillMode=process" in unit
    assert f'Environment="SUBAGENTS_HOME={home.root / "h"}"' in unit
    empty = tmp_path / "empty"
    empty.mkdir()
    done = home.cli("service", "install", env={"PATH": str(empty)})
    assert done.code == 7
    assert "has no systemd" in done.err


@pytest.mark.requirement("cli:service")
def test_the_service_is_installed_and_taken_away_through_systemctl(
    home: Home, tmp_path: Path
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "systemctl").write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\n')
    (tools / "systemctl").chmod(0o755)
    env = {"PATH": f"{tools}:/usr/bin:/bin", "XDG_CONFIG_HOME": str(tmp_path / "config")}
    unit = tmp_path / "config" / "systemd" / "user" / "subagents.service"
    assert home.cli("service", "install", env=env).code == 0
    assert "serve" in unit.read_text()
    assert "--user enable --now subagents.service" in (tmp_path / "calls").read_text()
    assert home.cli("service", "uninstall", env=env).code == 0
    assert not unit.exists()
    assert "--user disable --now subagents.service" in (tmp_path / "calls").read_text()
