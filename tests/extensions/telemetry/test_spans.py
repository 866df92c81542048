"""A run and its journal as spans: names, ids, parents, links, and no content."""

import pytest
from tests.builders import ME, NOW_MS, RUN, Life, a_contract, a_resolved, taken_over

from subagents.domain.run.events import AttemptTakenOver, ChecksPassed, Redelivered
from subagents.domain.run.outcome import (
    OK,
    Delivered,
    DeliveryFailed,
    DeliveryPath,
    Verdict,
)
from subagents.domain.run.run import Run
from subagents.domain.run.signals import ToolSeen, UsageSeen
from subagents.domain.run.spec import RunSpec
from subagents.domain.run.usage import Usage
from subagents.domain.run.values import RunId, replace
from subagents.extensions.telemetry import span_names as genai
from subagents.extensions.telemetry import spans
from subagents.extensions.telemetry.spans import Span, spans_of
from subagents.extensions.telemetry.trace_ids import (
    Lineage,
    lineage,
    span_id,
    trace_id,
    traceparent,
)

ALONE = Lineage(root=RUN)
SECRET = "sk-abcdefghijklmnopqrstuvwxyz0123"


def told(life: Life, where: Lineage = ALONE, **options: bool | str) -> list[Span]:
    return spans_of(life.run, life.journal, where, **options)  # type: ignore[arg-type]


def a_life(spec: RunSpec | None = None) -> Life:
    life = Life.begin(spec, a_resolved(model="big-1")).pass_ms(50).start().pass_ms(100)
    life.signal(ToolSeen(key="t1", name="Bash")).pass_ms(10)
    life.signal(ToolSeen(key="t2", name="Edit")).pass_ms(10)
    usage = Usage(tokens_in=1200, tokens_out=34, tokens_cache_read=900, cost_usd=0.5)
    return life.signal(UsageSeen(key="u", usage=usage))


@pytest.mark.requirement("telemetry:attempt-span")
def test_a_span_names_the_agent_of_its_attempt_whoever_took_over() -> None:
    life = a_life().exit(1)
    before, after = (
        spans_of(run, life.journal, ALONE, description="it")[0]
        for run in (life.run, taken_over(life.run))
    )
    about = {**before.attributes}
    del about["gen_ai.agent.description"]  # that is of the other one
    assert (after.name, after.attributes) == (before.name, about)


@pytest.mark.requirement("telemetry:attempt-span")
def test_an_attempt_is_one_span_that_says_who_worked_for_whom_and_at_what_cost() -> None:
    life = a_life().result("done").pass_ms(30).exit()
    life.deliver(Delivered(path=DeliveryPath.DIRECT)).clean_up()

    span = told(life, description="does things")[0]

    assert span.name == "invoke_agent worker"
    assert (span.start_ms, span.end_ms) == (NOW_MS + 50, NOW_MS + 200)
    assert (span.trace_id, span.parent_id, span.links) == (trace_id(RUN), None, ())
    assert (span.is_remote_call, span.has_failed) == (True, False)
    assert span.attributes == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "scripted",
        "gen_ai.agent.id": "worker",
        "gen_ai.agent.name": "worker",
        "gen_ai.agent.description": "does things",
        "gen_ai.conversation.id": "agent:worker:subagent:u1",
        "gen_ai.request.model": "big-1",
        "gen_ai.usage.input_tokens": 1200,
        "gen_ai.usage.output_tokens": 34,
        "gen_ai.usage.cache_read.input_tokens": 900,
        "subagents.cost_usd": 0.5,
        "subagents.run.id": RUN,
        "subagents.label": "job",
        "subagents.runtime": "scripted",
        "subagents.depth": 1,
        "subagents.attempt": 1,
        "subagents.queued_ms": 50,
        "subagents.outcome": "ok",
        "subagents.delivery.path": "direct",
    }
    (delivery,) = [each for each in span.events if each.name == "delivery"]
    assert delivery.attributes == {
        "subagents.delivery.target": ME,
        "subagents.delivery.outcome": "delivered",
        "subagents.delivery.path": "direct",
    }


@pytest.mark.requirement("telemetry:tool-spans")
def test_each_tool_is_a_span_under_its_attempt_at_the_time_it_was_seen() -> None:
    life = a_life().exit()

    attempt, *tools = told(life)

    assert [(each.name, each.start_ms - NOW_MS) for each in tools] == [
        ("execute_tool Bash", 150),
        ("execute_tool Edit", 160),
    ]
    assert {each.parent_id for each in tools} == {attempt.span_id}
    assert len({each.span_id for each in (attempt, *tools)}) == 3
    assert tools[0].attributes["gen_ai.tool.name"] == "Bash"


@pytest.mark.requirement("telemetry:tool-spans")
def test_a_run_with_very_many_tools_keeps_the_first_and_counts_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(spans, "TOOLS_MAX", 3)
    life = Life.begin().start()
    for number in range(5):
        life.signal(ToolSeen(key=f"t{number}", name="Bash"))
    life.exit()

    attempt, *tools = told(life)

    assert len(tools) == 3
    assert attempt.attributes[genai.TOOLS_LEFT_OUT] == 2


@pytest.mark.requirement("telemetry:retry-linked")
def test_a_retry_is_a_span_of_its_own_linked_to_the_first() -> None:
    life = Life.begin(RunSpec(task="do it", retry_count=1)).start().pass_ms(5).exit(1)
    life.timer().start().pass_ms(5).exit()

    first, second = told(life)

    assert first.has_failed
    assert first.attributes["error.type"] == "exit_code"
    assert not second.has_failed
    assert [(each.kind, each.span_id) for each in second.links] == [("retry_of", first.span_id)]
    assert second.attributes["subagents.retry_of"] == f"{RUN}#1"
    assert second.parent_id is None
    assert second.start_ms >= first.end_ms


@pytest.mark.requirement("telemetry:verification-span")
def test_the_check_of_a_contract_is_a_span_under_the_attempt_that_it_judged() -> None:
    spec = RunSpec(task="do it", verification=a_contract())
    life = Life.begin(spec).start().pass_ms(10).exit().pass_ms(40).verify(Verdict.FAILED)

    attempt, check = told(life)

    assert (check.name, check.parent_id) == ("verify", attempt.span_id)
    assert (check.start_ms, check.end_ms) == (NOW_MS + 10, NOW_MS + 50)
    assert check.attributes["subagents.contract.status"] == "failed"
    assert check.has_failed
    assert attempt.end_ms >= check.end_ms
    assert attempt.attributes["error.type"] == "verification_failed"
    assert attempt.attributes["subagents.contract.status"] == "failed"


@pytest.mark.requirement("telemetry:verification-span")
def test_the_time_of_a_judge_belongs_to_the_check() -> None:
    life = Life.begin(RunSpec(task="do it", verification=a_contract())).start().pass_ms(10).exit()
    life.apply(ChecksPassed(at_ms=life.at_ms, attempt=1, checks=()))
    life.pass_ms(40).child().child_ends(OK, "fine").verify(Verdict.PASSED)

    _, check = told(life)

    assert (check.start_ms, check.end_ms) == (NOW_MS + 10, NOW_MS + 50)


@pytest.mark.requirement("telemetry:untried")
def test_a_run_that_ended_before_it_began_is_a_span_too() -> None:
    life = Life.begin().pass_ms(70).cancel()

    (span,) = told(life)

    assert span.attributes["subagents.attempt"] == 0
    assert span.attributes["error.type"] == "cancelled_by_caller"
    assert (span.start_ms, span.end_ms) == (NOW_MS, NOW_MS + 70)
    assert [each.name for each in span.events] == ["cancel requested"]


def a_child(parent: Run, *, created_ms: int, ended_ms: int) -> Run:
    life = Life.begin(run_id=RunId("r-child00000"), requester_run=parent.id, depth=2)
    run = life.start().exit().run
    assert run.conclusion is not None
    return replace(
        run,
        times=replace(run.times, created_at_ms=created_ms),
        conclusion=replace(run.conclusion, ended_at_ms=ended_ms),
    )


@pytest.mark.requirement("telemetry:tree")
def test_a_child_lies_under_the_attempt_that_spawned_it() -> None:
    life = Life.begin(RunSpec(task="do it", retry_count=1)).start().pass_ms(5).exit(1)
    life.timer().start().pass_ms(50).exit()
    parent = life.run
    second = parent.attempts[1].times.requested_at_ms
    ended = parent.ended_at_ms or 0
    child = a_child(parent, created_ms=second + 1, ended_ms=ended)

    (span,) = spans_of(child, (), Lineage(root=RUN, parent=parent))

    assert span.parent_id == span_id(RUN, 2)
    assert (span.trace_id, span.links) == (trace_id(RUN), ())
    assert span.attributes["subagents.parent.id"] == RUN


@pytest.mark.requirement("telemetry:outlived")
def test_a_child_that_outlived_its_parent_is_linked_to_it_in_the_same_trace() -> None:
    parent = Life.begin().start().pass_ms(5).exit().run
    child = a_child(parent, created_ms=NOW_MS + 1, ended_ms=(parent.ended_at_ms or 0) + 1)

    (span,) = spans_of(child, (), Lineage(root=RUN, parent=parent))

    assert span.parent_id is None
    assert span.trace_id == trace_id(RUN)
    assert [(each.kind, each.span_id) for each in span.links] == [("parent", span_id(RUN, 1))]


@pytest.mark.requirement("telemetry:content-off")
def test_no_text_of_anybody_is_in_a_span_unless_content_is_asked_for() -> None:
    spec = RunSpec(task=f"read the diary, key {SECRET}")
    life = Life.begin(spec).start().ask().result("dear diary").exit(1)
    life.deliver(DeliveryFailed(retryable=False, error="dear courier"))

    assert "diary" not in repr(told(life))
    assert "which one" not in repr(told(life))
    assert "courier" not in repr(told(life))
    (span,) = told(life, content=True)
    assert '"content":"read the diary, key [redacted]"' in str(
        span.attributes[genai.INPUT_MESSAGES]
    )
    assert "dear diary" in str(span.attributes[genai.OUTPUT_MESSAGES])


@pytest.mark.requirement("telemetry:same-ids")
def test_told_again_after_more_happened_the_ids_stay_the_same() -> None:
    life = a_life().exit()
    life.deliver(DeliveryFailed(retryable=False, error="gone"))
    before = told(life)
    life.apply(Redelivered(at_ms=life.at_ms, by="me"))
    life.deliver(Delivered(path=DeliveryPath.QUEUED)).clean_up()

    after = told(life)

    assert [each.span_id for each in after] == [each.span_id for each in before]
    assert after[0].attributes["subagents.delivery.path"] == "queued"


@pytest.mark.requirement("telemetry:same-ids")
def test_a_worker_is_told_its_span_before_it_starts_as_w3c_wants_it() -> None:
    life = a_life().exit()
    (span, *_) = told(life)

    assert traceparent(RUN, RUN, 1) == f"00-{span.trace_id}-{span.span_id}-01"
    assert len(span.trace_id) == 32
    assert len(span.span_id) == 16


@pytest.mark.requirement("telemetry:tree")
def test_the_root_of_a_run_is_found_upwards_as_far_as_ancestors_are_kept() -> None:
    runs = {
        name: Life.begin(run_id=RunId(name), requester_run=above).run
        for name, above in (("r-a", None), ("r-b", "r-a"), ("r-c", "r-b"))
    }

    assert lineage(runs["r-c"], runs.get) == Lineage(root=RunId("r-a"), parent=runs["r-b"])
    assert lineage(runs["r-a"], runs.get) == Lineage(root=RunId("r-a"))
    del runs["r-a"]
    assert lineage(runs["r-c"], runs.get).root == "r-a"
    assert lineage(runs["r-c"], lambda _: None) == Lineage(root=RunId("r-b"))


@pytest.mark.requirement("telemetry:attempt-span")
def test_a_restart_in_the_middle_is_an_event_of_the_span() -> None:
    life = Life.begin().start()
    life.apply(AttemptTakenOver(at_ms=life.at_ms, attempt=1, epoch=2))
    life.exit()

    assert [each.name for each in told(life)[0].events] == ["taken over after a restart"]
