"""What a worker says with ``subagents`` reaches the daemon and its requester."""

import pytest
from tests.cli.cli_home import Home
from tests.e2e.live_home import until


@pytest.mark.requirement("cli:answer", "cli:worker-verbs")
def test_a_workers_question_reaches_whoever_waits_and_the_answer_reaches_the_worker(
    shared: Home,
) -> None:
    task = "echo got $(subagents ask 'which branch?' --option main --option dev --timeout 30s)"
    waiting = shared.start("run", task, "--label", "asker")
    try:
        assert waiting.stderr is not None
        lines = iter(waiting.stderr.readline, "")
        assert any("asker asks: which branch?" in line for line in lines)
        assert [next(lines), next(lines)] == ["  1  main\n", "  2  dev\n"]
        command = next(line for line in lines if "answer with:" in line)
        items = shared.ok("inbox", "--attention", "--json").rows("items")
        assert "which branch?" in [each["text"] for each in items]
        request = command.split()[-2]
        assert shared.ok("answer", request, "2").out == f"{request}: answered\n"
        out, _ = waiting.communicate(timeout=90)
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
    short = shared.ok("run", "subagents ask 'sure?' --timeout 0.0001s 2>&1; echo $?")
    assert short.out.startswith("subagents: --timeout must be at least 1s, not '0.0001s'")
    assert short.out.endswith("\n2\n")


def asked(home: Home, task: str, decision: str, *text: str) -> str:
    """What a worker printed that asked once and was answered so."""
    run = home.spawn(task)
    request = until(lambda: question_of(home, run), what="the question")
    home.ok("answer", request, *text, "--decision", decision)
    return home.ok("wait", run).out


def question_of(home: Home, run: str) -> str | None:
    items = home.ok("inbox", "--attention", "--json").rows("items")
    found = (str(each["requestId"]) for each in items if each["runId"] == run and each["requestId"])
    return next(found, None)


@pytest.mark.requirement("cli:worker-verbs", "cli:exit-codes")
@pytest.mark.parametrize(
    ("decision", "text", "said", "code"),
    [
        ("answer", "yes, both", "yes, both", 0),
        ("approve", "", "approve", 0),
        ("deny", "", "deny", 9),
        ("deny", "not on Friday", "not on Friday", 9),
    ],
)
def test_a_denied_question_is_no_success_in_a_shell(
    shared: Home, decision: str, text: str, said: str, code: int
) -> None:
    task = "subagents ask 'drop it?' --timeout 60s; echo $?"
    assert asked(shared, task, decision, *([text] if text else [])) == f"{said}\n{code}\n"


@pytest.mark.requirement("cli:worker-verbs")
def test_the_decision_alone_is_printed_where_it_is_asked_for(shared: Home) -> None:
    task = "subagents ask 'drop it?' --decision --timeout 60s 2>/dev/null; echo $?"

    assert asked(shared, task, "deny", "not on Friday") == "deny\n9\n"
    assert asked(shared, task, "answer", "the old one") == "answer\n0\n"


@pytest.mark.requirement("cli:worker-verbs", "notices:answered")
def test_the_answer_to_a_notice_is_in_the_inbox_of_a_worker_that_takes_no_messages(
    shared: Home,
) -> None:
    task = (
        "subagents notify 'disk full' --priority blocker; "
        "until subagents inbox 2>/dev/null | grep 'use /mnt'; do sleep 0.1; done; subagents inbox"
    )
    run = shared.spawn(task)
    request = until(lambda: question_of(shared, run), what="the blocker")
    shared.ok("answer", request, "use /mnt")

    out = shared.ok("wait", run).out

    assert out == '  [Answer to your blocker "disk full"]: use /mnt\n'
    mine = shared.ok("inbox", "--all", "--json").rows("messages")
    assert "answer" not in [each["kind"] for each in mine]


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
