"""What a worker says with ``subagents`` reaches the daemon and its requester."""

import pytest
from tests.cli.cli_home import Home


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
