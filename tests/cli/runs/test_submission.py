"""``run`` and ``spawn`` on a real daemon: what is printed, and the exit code."""

import re

import pytest
from tests.cli.cli_home import Home


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
    (told,) = [line for line in done.err.splitlines() if "has 2 items" in line]
    assert told.strip() == "File out.json has 2 items, minimum 3 required"


@pytest.mark.requirement("cli:run", "contract:fresh")
def test_a_second_night_is_not_done_by_the_files_of_the_first(shared: Home) -> None:
    flags = ("--verify", "nightly.json", "--verify-json")
    first = shared.cli("run", "date +'[%s%N]' > nightly.json", *flags)
    second = shared.cli("run", "echo done", "--label", "second", *flags)
    assert (first.code, second.code) == (0, 6)
    assert "nightly.json was there before the run and did not change" in second.err
    (warning,) = [line for line in second.err.splitlines() if line.startswith("warning: ")]
    assert re.match(r"warning: r-\w+: second: nightly.json is there already", warning)


@pytest.mark.requirement("cli:run", "vacuous:shown")
def test_a_contract_that_was_met_before_is_never_called_verified(shared: Home) -> None:
    (shared.work / "kept.json").write_text("{}")
    flags = ("--label", "idle", "--verify", "kept.json", "--verify-json", "--verify-existing")
    done = shared.cli("run", "echo done", *flags)
    run_id = re.findall(r"r-\w+", done.err)[-1]
    shown = [
        done.err,
        *(shared.ok(each, run_id).out for each in ("show", "status", "tree", "log", "why")),
        next(line for line in shared.ok("list").out.splitlines() if run_id in line),
    ]
    assert done.code == 0
    for text in shown:
        assert "vacuous" in text, text
        assert "verified" not in text, text


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
    done = shared.ok("spawn", "true")
    assert done.out.startswith("r-")
    assert f"{done.out.strip()}: true (command) " in done.err
    assert f"subagents wait {done.out.strip()}" in done.err
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

    other = shared.cli("spawn", "false", "--idempotency-key", "once", "--json")
    assert (other.code, other.json["code"]) == (1, "idempotency_conflict")
    assert other.json["details"] == {"runId": first, "differs": ["task"]}


@pytest.mark.requirement("cli:exit-codes")
def test_a_refused_spawn_ends_with_4_and_names_the_key_to_change(shared: Home) -> None:
    key = "SUBAGENTS_AGENTS__DEFAULTS__SUBAGENTS__MAX_SPAWN_DEPTH"
    done = shared.cli("run", "true", env={key: "0"})
    assert done.code == 4
    assert "agents.defaults.subagents.max_spawn_depth" in done.err


@pytest.mark.requirement("input:without-effect")
@pytest.mark.parametrize(
    "flags",
    [
        ["--retry-delay", "5s"],
        ["--backoff", "fixed"],
        ["--retry-on", "429"],
        ["--retry-max-time", "1m"],
        ["--include-result"],
        ["--accept-partial"],
        ["--dependency-timeout", "1m"],
        ["--retry", "5", "--verify-cmd", "true"],
    ],
)
def test_a_flag_that_does_nothing_or_less_than_it_seems_is_said_when_the_run_is_accepted(
    shared: Home, flags: list[str]
) -> None:
    for more in ((), ("--dry-run",)):
        said = shared.ok("run", "true", *flags, *more).err
        assert f": {flags[0]} " in said
        # The name of the parameter is for callers of the API.
        assert not re.search("[a-z][A-Z]", said)
    assert "warning" not in shared.ok("run", "true").err
