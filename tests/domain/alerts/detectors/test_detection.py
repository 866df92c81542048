"""What a worker says becomes alerts: each once, under keys that do not depend on how it came."""

import msgspec
import pytest

from subagents.domain.alerts import detectors
from subagents.domain.alerts.detectors import Watch
from subagents.domain.run.alert import Alert, AlertKind, AlertRules
from subagents.domain.run.worker_output import (
    ApiError,
    ContextUse,
    LineType,
    OutputItem,
    PlanItem,
    PlanStatus,
    ToolUse,
)

RULES = AlertRules()
MINUTE = 60_000
START = detectors.begin(Watch(), attempt=1, at_ms=0)


def text(words: str = "hello") -> OutputItem:
    return OutputItem(type=LineType.TEXT, text=words)


def used(name: str = "Bash", **fields: object) -> OutputItem:
    return OutputItem(type=LineType.TOOL, text=name, tool=ToolUse(name=name, **fields))  # type: ignore[arg-type]


def shell(command: str, output: str = "", code: int | None = 0) -> OutputItem:
    return used(command=command, output=output, exit_code=code, is_error=bool(code))


def refused(message: str = "rate limited", retry: str | None = None) -> OutputItem:
    error = ApiError(message=message, retry=retry)
    return OutputItem(type=LineType.ERROR, text=message, api_error=error)


def context(tokens: int, window: int | None = 200_000, model: str | None = None) -> OutputItem:
    return OutputItem(
        type=LineType.SYSTEM, context=ContextUse(tokens=tokens, window=window, model=model)
    )


def plan(*items: tuple[str, str]) -> OutputItem:
    made = tuple(PlanItem(text=words, status=PlanStatus(status)) for words, status in items)
    return used("TodoWrite", plan=made)


def see(*said: OutputItem, watch: Watch = START, at_ms: int = 0) -> tuple[Watch, list[Alert]]:
    watch, alerts = detectors.observe(watch, said, at_ms=at_ms, rules=RULES)
    return watch, list(alerts)


def texts(*said: OutputItem) -> list[str]:
    return [each.text for each in see(*said)[1]]


def after(watch: Watch, now_ms: int, rules: AlertRules = RULES) -> tuple[Watch, list[Alert]]:
    watch, alerts = detectors.elapsed(watch, now_ms=now_ms, rules=rules)
    return watch, list(alerts)


# -- api errors --------------------------------------------------------------------------------


@pytest.mark.requirement("detectors:api-error")
def test_an_api_error_says_what_was_refused_and_which_try_it_was() -> None:
    (alert,) = see(refused(retry="2/5"))[1]

    assert alert.text == "❌ API error: rate limited (retry 2/5)"
    assert alert.kind is AlertKind.API_ERROR
    assert alert.fields == {"message": "rate limited", "retry": "2/5"}
    assert alert.key == "api_error:1.1"


@pytest.mark.requirement("detectors:api-error")
def test_the_same_api_error_is_told_again_only_after_something_succeeded() -> None:
    retries = [refused(retry=f"{n}/5") for n in range(1, 6)]
    waits = [refused(f"overloaded, retry in {n} s (request req_{n}a8f3c2e)") for n in (1, 2, 4)]

    assert len(texts(*retries)) == 1
    assert len(texts(*waits)) == 1
    assert len(texts(refused(), text("still here"), refused())) == 1
    assert len(texts(refused(), used("Read"), refused())) == 2
    assert len(texts(refused(), context(10), refused())) == 2
    assert len(texts(refused("529 overloaded"), refused("401 unauthorized"))) == 2
    assert len(texts(refused("API error 529"), refused("API error 401"))) == 2


# -- silence -----------------------------------------------------------------------------------


@pytest.mark.requirement("detectors:stuck")
def test_silence_is_told_once_with_the_last_activity_and_again_after_something_was_said() -> None:
    watch, _ = see(used("Edit", path="src/bridge.py"))

    assert detectors.next_due_ms(watch, RULES) == 5 * MINUTE
    assert after(watch, 5 * MINUTE - 1) == (watch, [])
    watch, (alert,) = after(watch, 5 * MINUTE)
    assert alert.text == "⚠️ No progress for 5 minutes (last: editing bridge.py)"
    assert alert.fields == {"silentMs": 300_000, "lastActivity": "editing src/bridge.py"}
    assert detectors.next_due_ms(watch, RULES) is None
    assert after(watch, 90 * MINUTE) == (watch, [])
    watch, _ = see(text(), watch=watch, at_ms=91 * MINUTE)
    assert len(after(watch, 96 * MINUTE)[1]) == 1


@pytest.mark.requirement("detectors:stuck")
def test_a_worker_that_never_says_anything_is_told_too() -> None:
    (alert,) = after(START, 5 * MINUTE)[1]

    assert alert.text == "⚠️ No progress for 5 minutes"
    assert alert.fields["lastActivity"] is None


@pytest.mark.requirement("detectors:stuck")
def test_a_tool_that_runs_may_be_silent_for_longer() -> None:
    began = used(command="npm test", is_end=False, call_id="c1")
    watch, _ = see(began)

    assert detectors.next_due_ms(watch, RULES) == 20 * MINUTE
    assert [each.text for each in after(watch, 20 * MINUTE)[1]] == [
        "⚠️ No progress for 20 minutes (last: running npm test)"
    ]
    watch, _ = see(used(call_id="c1"), watch=watch)
    assert detectors.next_due_ms(watch, RULES) == 5 * MINUTE


@pytest.mark.requirement("detectors:stuck")
def test_a_new_attempt_begins_with_no_open_tool_and_new_silence() -> None:
    watch, _ = see(used(command="npm test", is_end=False, call_id="c1"))
    watch = detectors.begin(watch, attempt=2, at_ms=MINUTE)

    assert detectors.next_due_ms(watch, RULES) == 6 * MINUTE
    assert after(watch, 6 * MINUTE)[1][0].key == "stuck:2.0"


@pytest.mark.requirement("detectors:stuck")
@pytest.mark.parametrize(
    ("silent_ms", "words"),
    [(2_000, "2 seconds"), (90_000, "90 seconds"), (60_000, "1 minute"), (7_200_000, "2 hours")],
)
def test_silence_is_measured_in_words_of_its_size(silent_ms: int, words: str) -> None:
    (alert,) = after(START, silent_ms, AlertRules(stuck_ms=silent_ms))[1]

    assert alert.text == f"⚠️ No progress for {words}"


# -- the plan ----------------------------------------------------------------------------------


@pytest.mark.requirement("detectors:milestones")
def test_items_of_a_plan_are_told_when_they_begin_and_when_they_are_done() -> None:
    first = plan(("Read the spec", "in_progress"), ("Build it", "pending"))
    second = plan(("Read the spec", "completed"), ("Build it", "in_progress"))
    _, alerts = see(first, second)

    assert [each.text for each in alerts] == [
        "📋 [1/2] Read the spec",
        "📋 [1/2] Read the spec ✅",
        "📋 [2/2] Build it",
    ]
    assert alerts[1].fields == {"task": "Read the spec", "status": "completed", "progress": "1/2"}
    assert [each.key for each in alerts] == [
        "task_milestone:1.1",
        "task_milestone:1.2",
        "task_milestone:1.2.2",
    ]


@pytest.mark.requirement("detectors:milestones")
def test_a_plan_that_is_sorted_worded_anew_or_written_again_is_no_news() -> None:
    first = plan(("Read", "completed"), ("Build", "in_progress"), ("Ship", "pending"))
    watch, _ = see(first)
    same = (
        first,
        plan(("Ship", "pending"), ("read", "completed"), ("Build ", "in_progress")),
        plan(("Ship it", "pending"), ("Read", "completed"), ("Build", "in_progress")),
        plan(("Ship it", "pending"), ("Read", "completed"), ("Build it all", "in_progress")),
        plan(
            ("Look", "pending"),
            ("Ship it", "pending"),
            ("Read", "completed"),
            ("Build it all", "in_progress"),
        ),
    )

    assert see(*same, watch=watch)[1] == []


@pytest.mark.requirement("detectors:milestones")
def test_a_plan_that_is_done_all_at_once_is_told_in_a_few_lines() -> None:
    done = plan(*((f"Step {number}", "completed") for number in range(1, 31)))
    told = texts(done)

    assert told[0] == "📋 [27/30] Step 27 ✅ (and 26 more)"
    assert told[1:] == [f"📋 [{n}/30] Step {n} ✅" for n in (28, 29, 30)]


# -- context -----------------------------------------------------------------------------------


@pytest.mark.requirement("detectors:context")
def test_thresholds_of_the_window_are_told_once_each() -> None:
    watch, alerts = see(*(context(tokens) for tokens in range(0, 196_000, 5_000)))

    assert [each.text for each in alerts] == [
        "🧠 Context at 50%",
        "🧠 Context at 75% — may compact soon",
        "🧠 Context at 90% — may compact soon",
    ]
    assert alerts[1].fields == {"percent": 75, "tokens": 150_000}
    assert [each.key for each in alerts] == [f"context_pressure:1:{n}" for n in (50, 75, 90)]
    assert (watch.context_tokens, watch.context_percent) == (195_000, 97)


@pytest.mark.requirement("detectors:context")
def test_after_a_compaction_thresholds_are_due_again_and_a_little_up_and_down_is_none() -> None:
    up_and_down = [context(tokens) for tokens in (151_000, 149_000, 152_000, 145_000, 150_000)]
    _, again = see(context(185_000), context(60_000), context(155_000))

    assert len(texts(*up_and_down)) == 1
    assert [each.key for each in again] == ["context_pressure:1:90", "context_pressure:1:75.2"]


@pytest.mark.requirement("detectors:context")
@pytest.mark.parametrize(
    ("model", "percent"),
    [
        ("claude-sonnet-4-5-20250929", 80),
        ("anthropic/claude-opus-4-1", 80),
        ("us.anthropic.claude-sonnet-4-20250514-v1:0", 80),
        ("claude-sonnet-4-5[1m]", 16),
        ("gpt-5-codex", 40),
        ("gpt-4o-mini", 125),
        ("models/gemini-2.5-pro", 15),
        ("house-model", None),
        (None, None),
    ],
)
def test_a_window_that_is_not_told_is_looked_up_by_the_models_name(
    model: str | None, percent: int | None
) -> None:
    watch, alerts = see(context(160_000, window=None, model=model))

    assert watch.context_percent == percent
    assert bool(alerts) == (percent is not None and percent >= 50)


# -- sub-agents --------------------------------------------------------------------------------


def task(
    call_id: str, *, is_end: bool = False, agents: int = 1, team: str | None = None
) -> OutputItem:
    return used("Task", call_id=call_id, is_end=is_end, agents=agents, team=team)


@pytest.mark.requirement("detectors:spawns")
def test_sub_agents_started_side_by_side_are_one_line() -> None:
    calls = (task("a", team="refactor-squad"), context(10), task("b"), task("c"))
    watch, alerts = see(*calls, text("waiting"))

    assert [each.text for each in alerts] == ["🔄 Spawned 3 sub-agents (team: refactor-squad)"]
    assert alerts[0].fields == {"count": 3, "teamName": "refactor-squad"}
    assert alerts[0].key == "subagent_spawn:1.1"
    ends = [task(each, is_end=True) for each in "abc"]
    assert see(*ends, text(), watch=watch)[1] == []


@pytest.mark.requirement("detectors:spawns")
def test_sub_agents_that_nothing_follows_are_told_after_two_seconds() -> None:
    watch, alerts = see(task("a", is_end=True, agents=2), at_ms=1_000)

    assert alerts == []
    assert detectors.next_due_ms(watch, RULES) == 3_000
    watch, told = after(watch, 3_000)
    assert [each.text for each in told] == ["🔄 Spawned 2 sub-agents"]
    assert told[0].fields == {"count": 2, "teamName": None}
    assert see(task("b"), text(), watch=watch, at_ms=3_000)[1][0].text == "🔄 Spawned 1 sub-agent"


# -- failures ----------------------------------------------------------------------------------


FAILED = shell("python x.py", "Traceback\nValueError: no", code=1)


@pytest.mark.requirement("detectors:failure-loop")
def test_three_failures_in_a_row_are_a_loop_told_once_until_something_succeeds() -> None:
    _, alerts = see(*[FAILED] * 7, used("Read"), *[FAILED] * 3)

    assert [each.text for each in alerts] == [
        "🔁 3 consecutive Bash failures — possibly stuck",
        "🔁 3 consecutive Bash failures — possibly stuck",
    ]
    assert alerts[0].fields == {
        "consecutiveFailures": 3,
        "lastTool": "Bash",
        "lastError": "exit code 1: ValueError: no",
    }
    assert [each.key for each in alerts] == ["failure_loop:1.3", "failure_loop:1.11"]


@pytest.mark.requirement("detectors:failure-loop")
def test_failures_of_several_tools_are_a_loop_too_and_an_answer_of_grep_is_none() -> None:
    edit = used("Edit", is_error=True, output="String to replace not found")
    nothing_found = shell("cd src && grep -rn missing .", code=1)

    assert texts(FAILED, edit, FAILED) == ["🔁 3 consecutive tool failures — possibly stuck"]
    assert texts(FAILED, nothing_found, nothing_found, FAILED) == []
    assert len(texts(FAILED, nothing_found, FAILED, FAILED)) == 1
    assert len(texts(*[shell("grep x nowhere", code=2)] * 3)) == 1


# -- commits -----------------------------------------------------------------------------------


def committed(message: str, where: str = "main abc1234") -> OutputItem:
    return shell(f"git commit -m '{message}'", f"[{where}] {message}\n 1 file changed")


@pytest.mark.requirement("detectors:commits")
def test_a_commit_is_told_by_its_message_after_the_batch() -> None:
    watch, alerts = see(committed("feat: add event ring buffer"), at_ms=1_000)

    assert alerts == []
    assert detectors.next_due_ms(watch, RULES) == 31_000
    watch, told = after(watch, 31_000)
    assert [each.text for each in told] == ['📝 Committed: "feat: add event ring buffer"']
    assert told[0].fields == {"message": "feat: add event ring buffer", "count": 1}
    assert told[0].key == "git_commit:1.1"
    assert watch.commits is None


@pytest.mark.requirement("detectors:commits")
def test_commits_within_the_batch_are_one_line_and_a_later_one_its_own() -> None:
    watch, _ = see(committed("a"), committed("b"))
    watch, _ = see(committed("c"), watch=watch, at_ms=29_000)
    watch, told = see(committed("d"), watch=watch, at_ms=60_000)

    assert [each.text for each in told] == ['📝 3 commits: "a", "b", "c"']
    assert told[0].fields["count"] == 3
    assert [each.text for each in detectors.ended(watch)[1]] == ['📝 Committed: "d"']


@pytest.mark.requirement("detectors:commits")
def test_many_long_messages_fit_on_one_line() -> None:
    watch, _ = see(*(committed(f"{n}: " + "very long message " * 20) for n in range(9)))
    (alert,) = detectors.ended(watch)[1]

    assert len(alert.text) <= 160
    assert alert.text.startswith('📝 9 commits: "0: very long')
    assert alert.fields["count"] == 9


@pytest.mark.requirement("detectors:commits")
def test_what_is_gathered_is_told_when_the_attempt_ends_or_the_next_begins() -> None:
    watch, _ = see(committed("last words"), task("a"))
    _, at_the_end = detectors.ended(watch)
    _, later = after(detectors.begin(watch, attempt=2, at_ms=5_000), 40_000)

    assert [each.text for each in at_the_end] == [
        "🔄 Spawned 1 sub-agent",
        '📝 Committed: "last words"',
    ]
    assert [each.key for each in later] == [each.key for each in at_the_end]


@pytest.mark.requirement("detectors:commits")
@pytest.mark.parametrize(
    ("command", "output", "messages"),
    [
        ("git commit -m x", "[main (root-commit) abc1234] x", ["x"]),
        ("git commit -m x", "[detached HEAD abc1234] x", ["x"]),
        ("git commit -m x", "[HEAD détachée abc1234] x", ["x"]),
        ("git commit -m x", "[feature/a-b_c.d abc1234] x", ["x"]),
        ("git commit -qm 'quiet one'", "", ["quiet one"]),
        ("git commit -qam'glued'", "", ["glued"]),
        ("git -C sub -c user.name=x commit --quiet --message='a: b'", "", ["a: b"]),
        ("git commit --quiet --message 'a' -m 'body'", "", ["a"]),
        ("git commit -q --amend --no-edit", "", [""]),
        ("git commit -q -m \"$(cat <<'EOF'\n\nfirst\n\nsecond\nEOF\n)\"", "", ["first"]),
        (
            "cd x && git add -A && git commit -m a && git push",
            "[main abc1234] a\nEverything",
            ["a"],
        ),
        ("bash -c 'git commit -qm inner'", "", ["inner"]),
        ("git commit -m a; git commit -m b", "[main abc1234] a\n[main def5678] b", ["a", "b"]),
        ("git commit --dry-run -m x", "", []),
        ("git commit -m x || true", "nothing to commit, working tree clean", []),
        ("git status", "[main abc1234] x", []),
        ("echo git commit -m x", "git commit -m x", []),
        ("cat log.txt", "[main abc1234] x", []),
        ("git commit --help", "", []),
    ],
)
def test_commits_are_known_by_what_git_prints_or_by_how_it_ended(
    command: str, output: str, messages: list[str]
) -> None:
    watch, _ = see(shell(command, output))

    assert list(watch.commits.words if watch.commits else ()) == messages


@pytest.mark.requirement("detectors:commits")
def test_a_commit_that_failed_is_none_and_one_before_a_failure_is_one() -> None:
    hook, _ = see(shell("git commit -m x", "lint failed", code=1))
    push, _ = see(shell("git commit -m x && git push", "[main abc1234] x\nrejected", code=1))

    assert hook.commits is None
    assert push.commits is not None


# -- builds ------------------------------------------------------------------------------------


@pytest.mark.requirement("detectors:builds")
def test_a_build_that_failed_says_how_many_errors_and_where() -> None:
    lines = [f"src/bridge.ts({n},1): error TS2304: Cannot find name 'x'." for n in range(12)]
    (alert,) = see(shell("npm run build", "\n".join(lines), code=2))[1]

    assert alert.text == "🔨 Build failed: 12 errors in bridge.ts"
    assert alert.fields == {
        "command": "npm run build",
        "passed": False,
        "errors": 12,
        "summary": "12 errors in bridge.ts",
    }
    assert alert.key == "build_result:1.1"


@pytest.mark.requirement("detectors:builds")
def test_a_build_that_passed_is_told_and_passing_again_is_not() -> None:
    passed, failed = shell("cd web && npm run build"), shell("npm run build", "boom", code=2)
    _, alerts = see(passed, passed, shell("pytest -q", "2 passed in 0.1s"), passed, failed, passed)

    assert [each.text for each in alerts] == [
        "🔨 Build passed ✅ (0 errors)",
        "🔨 Tests passed ✅ (2 passed)",
        "🔨 Build failed: exit code 2",
        "🔨 Build passed ✅ (0 errors)",
    ]
    assert alerts[0].fields == {
        "command": "npm run build",
        "passed": True,
        "errors": 0,
        "summary": "Build passed",
    }


@pytest.mark.requirement("detectors:builds")
def test_the_end_of_a_tool_is_read_with_the_command_it_began_with() -> None:
    began = used(command="make", is_end=False, call_id="c1")
    ended = used(call_id="c1", exit_code=2, is_error=True, output="make: *** [x] Error 1")
    watch, alerts = see(began, ended)

    assert [each.text for each in alerts] == ["🔨 Build failed: make: *** [x] Error 1"]
    assert watch.open == ()
    assert watch.tools_used == 1


# -- activity ----------------------------------------------------------------------------------


@pytest.mark.requirement("detectors:activity")
@pytest.mark.parametrize(
    ("said", "activity"),
    [
        (used("Edit", path="src/bridge.py"), "editing src/bridge.py"),
        (used("MultiEdit", path="/home/ada/app/src/bridge.py"), "editing src/bridge.py"),
        (used("Write", path="a.md"), "editing a.md"),
        (used("NotebookEdit", path="a.ipynb"), "editing a.ipynb"),
        (used("Read", path="src/a.py"), "reading src/a.py"),
        (used("Bash", command="cd /x && npm test 2>&1 | tail"), "running npm test"),
        (used("Bash", command="export A=1; cargo build"), "running cargo build"),
        (used("Grep", input="TODO"), "searching TODO"),
        (used("Glob", input="**/*.py"), "searching **/*.py"),
        (used("WebFetch", input="https://example.com"), "reading https://example.com"),
        (used("WebSearch", input="python"), "searching python"),
        (used("Task", agents=1), "starting a sub-agent"),
        (plan(("a", "pending")), "planning"),
        (used("apply_patch", path="a.rs"), "editing a.rs"),
        (used("shell", command="ls -la"), "running ls -la"),
        (used("exec_command", command="go test ./..."), "running go test ./..."),
        (used("run_shell_command", command="make"), "running make"),
        (used("replace", path="a.go"), "editing a.go"),
        (used("write_file", path="b.go"), "editing b.go"),
        (used("read_many_files"), "reading"),
        (used("mcp__orch__spawn"), "using mcp__orch__spawn"),
        (OutputItem(type=LineType.THINKING, text="hm"), "thinking"),
        (
            text("I will now rewrite the parser\nand more"),
            "writing: I will now rewrite the parser and more",
        ),
        (refused(), None),
        (context(5), None),
    ],
)
def test_the_last_activity_says_what_a_worker_is_at(said: OutputItem, activity: str | None) -> None:
    assert see(said)[0].last_activity == activity


@pytest.mark.requirement("detectors:activity")
def test_the_newest_piece_that_tells_of_it_is_the_activity() -> None:
    edit = used("Edit", path="a.py")

    assert see(text(), edit, refused(), context(5))[0].last_activity == "editing a.py"
    assert see(edit, text("done"))[0].last_activity == "writing: done"
    assert see(*[text("line")] * 3, used("Read"), text(" "))[0].last_activity == "reading"


# -- form --------------------------------------------------------------------------------------


LONG = "Ж" * 5_000 + "\n\x1b[31m\u202e" + "x" * 5_000
EVERYTHING = (
    refused(LONG, retry=LONG),
    used("Edit", path=f"/a/{LONG}"),
    plan((LONG, "completed")),
    context(199_000),
    used("Task", agents=3, team=LONG),
    text(),
    shell(f"git commit -m '{LONG}'", f"[main abc1234] {LONG}"),
    shell(f"make {LONG}", f"{LONG}.c:1:1: error: x", code=2),
    *[used(LONG, is_error=True, output=LONG)] * 3,
)


@pytest.mark.requirement("detectors:form")
def test_every_alert_is_one_short_line_whatever_a_worker_writes() -> None:
    watch, alerts = see(*EVERYTHING)
    watch, late = after(watch, 50 * MINUTE)
    alerts += late

    kinds = {each.kind for each in alerts}
    assert kinds == set(AlertKind) - {AlertKind.BUDGET_ALERT}
    for each in alerts:
        assert len(each.text) <= 160
        assert "\n" not in each.text
        assert "\x1b" not in each.text
        assert "\u202e" not in each.text
        assert max(map(len, each.text.replace('"', " ").split())) <= 80
        assert all(len(str(value)) <= 200 for value in each.fields.values())


@pytest.mark.requirement("detectors:form")
def test_a_secret_in_a_command_or_message_is_in_no_alert_and_no_watch() -> None:
    secret = "sk-ant-api03-" + "a1B2" * 12
    watch, alerts = see(
        shell(f"API_KEY={secret} make deploy-test KEY={secret}", "boom", code=2),
        refused(f"invalid key {secret}"),
        committed(f"add {secret}"),
        plan((f"use {secret}", "in_progress")),
        used("Task", agents=1, team=secret),
        used("Bash", command=f"curl -H 'x-api-key: {secret}' host"),
    )
    alerts += detectors.ended(watch)[1]

    assert len(alerts) >= 4
    assert secret not in msgspec.json.encode(alerts).decode()
    assert secret not in msgspec.json.encode(watch).decode()


@pytest.mark.requirement("detectors:small")
def test_what_is_kept_between_batches_stays_small() -> None:
    busy = [
        *EVERYTHING,
        plan(*((f"Step {n} " + "x" * 180, "pending") for n in range(100))),
        *(refused(f"error kind {chr(65 + n)}") for n in range(26)),
        *(shell(f"make target-{n}") for n in range(100)),
        *(used("Bash", command="sleep 1 " + "y" * 4_000, call_id=f"c{n}") for n in range(50)),
    ]
    watch, _ = see(*busy)

    assert len(msgspec.json.encode(watch)) < 8_000
    assert msgspec.json.decode(msgspec.json.encode(watch), type=Watch) == watch
