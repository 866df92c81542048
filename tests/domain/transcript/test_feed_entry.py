"""What followers are shown of each event: the documented events, to the letter."""

import json
from typing import Any

import pytest

from subagents.domain.lifecycle.reduce import reduce
from subagents.domain.run import events as e
from subagents.domain.run.alert import Alert, AlertKind
from subagents.domain.run.events import Alerted, Event, ParentNotified, Spawned
from subagents.domain.run.outcome import Status
from subagents.domain.run.run import Exit, Priority, Run
from subagents.domain.run.signals import Exited, ResultSeen
from subagents.domain.run.spec import Mode, Resolved, RunSpec
from subagents.domain.run.values import RunId, SessionKey, replace
from subagents.domain.transcript.feed_entry import NAMES, NEWS, RUN, FeedDocument, feed_documents

DOCUMENTED: tuple[str, ...] = (
    (
        '{"type":"event", "event":"api_error", "agentId":"sentinella", "message":"rate limited",'
        ' "retry":"2/5"}'
    ),
    (
        '{"type":"event", "event":"task_milestone", "agentId":"sentinella",'
        ' "task":"Read specs and source files", "status":"completed", "progress":"2/5"}'
    ),
    (
        '{"type":"event", "event":"build_result", "agentId":"sentinella",'
        ' "command":"npm run build", "passed":true, "errors":0, "summary":"Build passed"}'
    ),
    (
        '{"type":"event", "event":"build_result", "agentId":"sentinella",'
        ' "command":"npm run build", "passed":false, "errors":12,'
        ' "summary":"12 errors in bridge.ts"}'
    ),
    (
        '{"type":"event", "event":"git_commit", "agentId":"sentinella",'
        ' "message":"feat: add event ring buffer"}'
    ),
    (
        '{"type":"event", "event":"context_pressure", "agentId":"sentinella", "percent":75,'
        ' "tokens":150000}'
    ),
    (
        '{"type":"event", "event":"subagent_spawn", "agentId":"sentinella", "count":3,'
        ' "teamName":"refactor-squad"}'
    ),
    (
        '{"type":"event", "event":"failure_loop", "agentId":"sentinella", "consecutiveFailures":3,'
        ' "lastTool":"Bash", "lastError":"exit code 1"}'
    ),
    (
        '{"type":"event", "event":"same_path", "agentId":"sentinella", "path":"a.py",'
        ' "message":"a.py also changed by two (r-1)", "otherRun":"r-1"}'
    ),
    (
        '{"type":"event", "event":"stuck", "agentId":"sentinella", "silentMs":300000,'
        ' "lastActivity":"editing bridge.ts"}'
    ),
    (
        '{"type":"event", "event":"budget_alert", "agentId":"sentinella", "costUsd":0.50,'
        ' "budgetUsd":1.00}'
    ),
)
"""One line per event, with just the fields it is documented to have."""

ABOUT = {
    "seq": 17,
    "runId": "r-0000000001",
    "label": "sentinella",
    "occurredAt": "1970-01-01T00:00:05.000Z",
}
"""What every structured event has besides."""


def a_run(**changes: Any) -> Run:
    event = Spawned(
        at_ms=1000,
        run_id=RunId("r-0000000001"),
        spec=RunSpec(task="the secret task"),
        resolved=Resolved(
            agent_id="claude",
            runtime="scripted",
            mode=Mode.RUN,
            label="sentinella",
            cwd="/w",
            lane="default",
            lane_slots=1,
        ),
        requester=SessionKey("agent:main:main"),
        depth=1,
        session_key=SessionKey("agent:claude:subagent:1"),
    )
    return replace(reduce(None, event).run, **changes)


def documents(run: Run, event: Event, *, names: tuple[str, ...] = NEWS) -> list[dict[str, object]]:
    found = feed_documents(run, event, number=17, seq=run.seq, names=frozenset(names))
    return [each.document for each in found]


def ended(result: str = "all done", code: int = 0) -> tuple[Run, Event]:
    """A run that just settled, and the event that settled it."""
    session = SessionKey("agent:claude:subagent:1")
    run = a_run()
    event: Event
    for event in (
        e.SlotGranted(at_ms=2000, session_key=session),
        e.AttemptStarted(at_ms=3000, attempt=1),
        e.SignalReceived(at_ms=4000, attempt=1, signal=ResultSeen(key="r", text=result)),
        e.SignalReceived(
            at_ms=5000,
            attempt=1,
            signal=Exited(
                key="x", exit=Exit(code=code), drained=True, stderr_tail="token=abcdefgh1234"
            ),
        ),
    ):
        run = reduce(run, event).run
    assert run.is_settled
    return run, event


@pytest.mark.requirement("feed:exact-fields")
@pytest.mark.parametrize("line", DOCUMENTED, ids=lambda line: json.loads(line)["event"])
def test_each_structured_event_has_exactly_its_documented_fields(line: str) -> None:
    wanted = json.loads(line)
    fields = {k: v for k, v in wanted.items() if k not in {"type", "event", "agentId"}}
    alert = Alert(kind=AlertKind(wanted["event"]), text="…", key="k", fields=fields)

    assert documents(a_run(), Alerted(at_ms=5000, alert=alert)) == [{**wanted, **ABOUT}]


@pytest.mark.requirement("feed:exact-fields")
def test_a_workers_message_is_a_cc_message_with_its_priority() -> None:
    text = "Build fails — missing dep X. Install it?"
    event = ParentNotified(at_ms=5000, message=text, priority=Priority.QUESTION)

    assert documents(a_run(), event) == [
        {"type": "event", "event": "cc_message", "agentId": "sentinella", "text": text}
        | {"priority": "question"}
        | ABOUT
    ]


@pytest.mark.requirement("feed:completion")
def test_the_event_that_gave_the_outcome_is_the_completion_and_no_other_is() -> None:
    run, event = ended()
    (found,) = documents(run, event)

    assert found == {
        "type": "event",
        "event": "completion",
        "agentId": "sentinella",
        "status": Status.OK,
        "reason": None,
        "error": None,
        "result": "all done",
        "resultBytes": 8,
        **ABOUT,
    }
    assert feed_documents(run, event, number=17, seq=run.seq - 1, names=frozenset(NEWS)) == ()
    assert (
        documents(reduce(run, e.CallRefused(at_ms=6000, call="x", reason="y", by="z")).run, event)
        == []
    )


@pytest.mark.requirement("feed:completion")
def test_a_completions_result_is_cut_and_keeps_its_size() -> None:
    run, event = ended("x" * 10_000)
    (found,) = documents(run, event)

    assert found["result"] == "x" * run.resolved.max_announce_chars
    assert found["resultBytes"] == 10_000


@pytest.mark.requirement("feed:no-secrets")
def test_secrets_in_what_workers_say_are_not_pushed() -> None:
    key = "sk-" + "a1B2" * 10
    run, event = ended(f"the key is {key}", code=3)
    notice = ParentNotified(at_ms=5000, message=f"use {key}")

    shown = json.dumps([*documents(run, event), *documents(a_run(), notice)], default=str)

    assert key not in shown
    assert "abcdefgh1234" not in shown
    assert "[redacted]" in shown


@pytest.mark.requirement("feed:run-event")
def test_every_event_has_one_generic_document_without_any_text_of_task_or_worker() -> None:
    run, event = ended("the secret result")
    found = feed_documents(run, event, number=17, seq=run.seq, names=frozenset(NAMES))

    assert [each.name for each in found] == ["completion", RUN]
    assert found[1] == FeedDocument(
        number=17,
        name=RUN,
        document={
            "seq": 17,
            "runId": run.id,
            "label": "sentinella",
            "agentId": "claude",
            "requester": "agent:main:main",
            "type": "SignalReceived",
            "occurredAt": "1970-01-01T00:00:05.000Z",
            "phase": "announcing",
        },
    )
    assert len(feed_documents(run, event, number=17, seq=run.seq, names=frozenset({RUN}))) == 1


@pytest.mark.requirement("feed:exact-fields")
def test_all_twelve_documented_events_have_names() -> None:
    documented = {json.loads(line)["event"] for line in DOCUMENTED}

    assert set(NEWS) == documented | {"cc_message", "completion"}
    assert len(NEWS) == 12
