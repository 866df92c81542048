"""Notices: one way up, and what wants an answer stays visible until there is one."""

import pytest
from tests.engine.world import ME, World

from subagents.api.answers import run_building
from subagents.api.wire.run_answers import RunRow
from subagents.api.wire.wire_struct import document_of
from subagents.domain.run.run import (
    Decision,
    MessageKind,
    Report,
)
from subagents.domain.run.spec import Abilities, Artifact, Contract
from subagents.domain.run.values import RequestId, RunId
from subagents.errors import NotFound, RateLimited, UsageError


async def shown(world: World, run_id: RunId) -> tuple[object, object, object]:
    row = document_of(run_building.shown(RunRow, await world.run(run_id), world.clock.now_ms()))
    return row["runStatus"], row["pendingRequestCount"], row["blockedReason"]


@pytest.mark.requirement("mailbox:notices")
async def test_a_notice_is_in_the_inbox_when_the_call_returns(world: World) -> None:
    run_id = await world.working()
    await world.clock.result(world.engine.questions.notify(run_id, "half way"))
    await world.clock.result(world.engine.questions.notify(run_id, "stuck", priority="blocker"))
    with pytest.raises(UsageError, match="priority must be info, question or blocker"):
        await world.engine.questions.notify(run_id, "x", priority="loud")

    rows = await world.engine.mailbox.offer_inbox(ME, reader="me")
    assert [row.message.kind for row in rows] == [MessageKind.NOTICE, MessageKind.BLOCKER]
    names = [row.message.id for row in rows]
    assert await world.clock.result(world.engine.mailbox.acknowledge(names, reader="me")) == 2
    assert await world.clock.result(world.engine.mailbox.acknowledge(names, reader="me")) == 0


@pytest.mark.requirement("notices:pending")
async def test_a_question_or_blocker_is_shown_until_it_is_answered_also_when_it_was_read(
    world: World,
) -> None:
    run_id = await world.working()
    assert await shown(world, run_id) == ("running", 0, None)
    await world.clock.result(world.engine.questions.notify(run_id, "half way"))
    assert await shown(world, run_id) == ("running", 0, None)
    await world.clock.result(world.engine.questions.notify(run_id, "disk full", priority="blocker"))
    await world.clock.advance(1)
    await world.clock.result(world.engine.questions.ask(run_id, "which disk?"))
    assert await shown(world, run_id) == ("blocked", 2, "disk full")
    names = [r.message.id for r in await world.engine.mailbox.offer_inbox(ME, reader="me")]
    await world.clock.result(world.engine.mailbox.acknowledge(names, reader="me"))

    assert await shown(world, run_id) == ("blocked", 2, "disk full")
    needs = await world.engine.queries.attention(ME)
    assert [(each.kind, each.request and each.request.id) for each in needs] == [
        ("blocker", f"{run_id}:n2"),
        ("question", f"{run_id}:q1"),
    ]
    node = document_of(run_building.node(await world.run(run_id), [], world.clock.now_ms()))
    assert (node["runStatus"], node["pendingRequestCount"]) == ("blocked", 2)
    assert "blockedReason" not in node


@pytest.mark.requirement("notices:answered")
async def test_the_answer_to_a_notice_is_on_record_and_reaches_the_worker_once(
    world: World,
) -> None:
    run_id = await world.working()
    await world.clock.result(
        world.engine.questions.notify(run_id, "which disk?", priority="question")
    )
    name = RequestId(f"{run_id}:n1")
    await world.restart()

    for text, is_first in (("/mnt", True), ("/tmp", False)):
        taken = await world.clock.result(
            world.engine.questions.answer(name, text, decision=Decision.ANSWER, by="me")
        )
        assert taken is is_first
    await world.clock.advance(2)

    assert world.runtime.steered == ['[Answer to your question "which disk?"]: /mnt']
    assert await shown(world, run_id) == ("running", 0, None)
    assert world.store.inbox(ME, unconsumed=True) == []
    stored = (await world.engine.questions.answer_of(name, wait_s=0)).answer
    assert stored is not None
    assert (stored.text, stored.by) == ("/mnt", "me")
    for wrong in ("n2", "q1"):
        with pytest.raises(NotFound, match=f"request {run_id}:{wrong} does not exist"):
            await world.engine.questions.answer(
                RequestId(f"{run_id}:{wrong}"), "x", decision=Decision.ANSWER, by="me"
            )


@pytest.mark.requirement("notices:answered-by-message")
async def test_a_message_to_the_worker_answers_its_notices(world: World) -> None:
    run_id = await world.working()
    for text in ("disk full", "no network"):
        await world.clock.result(world.engine.questions.notify(run_id, text, priority="blocker"))
    await world.clock.result(world.engine.control.steer(run_id, "use /mnt, offline", by="me"))

    assert await shown(world, run_id) == ("running", 0, None)
    assert world.store.inbox(ME, unconsumed=True) == []
    assert await world.engine.queries.attention(ME) == ()
    assert await world.folded(run_id) == await world.run(run_id)


@pytest.mark.requirement("notices:answered")
@pytest.mark.world(abilities=Abilities())
async def test_a_runtime_that_takes_no_messages_keeps_the_answer_on_record(world: World) -> None:
    run_id = await world.working()
    await world.clock.result(world.engine.questions.notify(run_id, "stuck", priority="blocker"))
    name = RequestId(f"{run_id}:n1")

    assert await world.clock.result(
        world.engine.questions.answer(name, "go on", decision=Decision.ANSWER, by="me")
    )

    assert await shown(world, run_id) == ("running", 0, None)
    assert (await world.run(run_id)).control.steers == ()
    assert world.runtime.steered == []


@pytest.mark.requirement("notices:closed-with-attempt")
async def test_an_unread_notice_of_an_ended_attempt_is_still_news(world: World) -> None:
    run_id = await world.working("slow")
    await world.clock.result(world.engine.questions.notify(run_id, "disk full", priority="blocker"))
    await world.until(run_id)

    assert (await world.run(run_id)).pending_requests == ()
    unread = [row.message.kind for row in world.store.inbox(ME, unconsumed=True)]
    assert unread == [MessageKind.BLOCKER, MessageKind.ANNOUNCEMENT]
    needs = await world.engine.queries.attention(ME)
    assert [(each.kind, each.request and each.request.id) for each in needs] == [("blocker", None)]


@pytest.mark.requirement("notices:limits")
async def test_a_worker_cannot_flood_its_requester(world: World) -> None:
    run_id = await world.working()
    for number in range(20):
        await world.clock.result(
            world.engine.questions.notify(run_id, f"stuck {number}", priority="blocker")
        )
    with pytest.raises(RateLimited, match="at most 20 unanswered question or blocker notices"):
        await world.engine.questions.notify(run_id, "stuck again", priority="question")
    await world.clock.result(world.engine.questions.notify(run_id, "news"))


# -- was the report the last act ------------------------------------------------------------------

REPORTED = Contract(artifacts=(Artifact(path="out.txt"),), require_completion_report=True)


@pytest.mark.requirement("mailbox:tool-used", "report:last-tool", "report:required-by-contract")
async def test_a_tool_used_after_the_report_is_named_by_the_contract(world: World) -> None:
    run_id = await world.working("late_writer", verification=REPORTED)
    await world.clock.result(world.engine.reports.report(run_id, Report(summary="wrote it")))
    await world.clock.result(world.engine.reports.tool_used(run_id, 1, "sessions_spawn"))

    run = await world.until(run_id)

    assert run.outcome is not None
    assert run.outcome.error == (
        "report_completion: The completion report was not the worker's last tool call: it used"
        " sessions_spawn after that"
    )


@pytest.mark.requirement("mailbox:tool-used")
async def test_a_tool_that_changes_nothing_costs_no_commit(world: World) -> None:
    run_id = await world.working()
    await world.clock.result(world.engine.reports.tool_used(run_id, 1, "sessions_list"))
    assert (await world.run(run_id)).attempt.last.tool is None
    await world.clock.result(world.engine.reports.report(run_id, Report(summary="done")))
    seq = (await world.run(run_id)).seq
    await world.clock.result(world.engine.reports.tool_used(run_id, 1, "report_completion"))
    await world.clock.result(world.engine.reports.tool_used(run_id, 2, "sessions_list"))
    await world.clock.result(world.engine.reports.tool_used(RunId("r-none"), 1, "sessions_list"))
    assert (await world.run(run_id)).seq == seq

    for _ in range(3):
        await world.clock.result(world.engine.reports.tool_used(run_id, 1, "sessions_list"))

    run = await world.run(run_id)
    assert (run.seq, run.attempt.last.is_report) == (seq + 1, False)


@pytest.mark.requirement("report-text:verified", "report:required-by-contract")
@pytest.mark.parametrize(
    ("agent", "error"),
    [
        ("says_report", None),
        (
            "says_wrong_report",
            (
                "report_completion: The worker gave no completion report: the completion report in"
                ' the text has status "done" (allowed: complete, partial, failed)'
            ),
        ),
        (
            "says_report_then_works",
            (
                "report_completion: The completion report was not the worker's last word: it used"
                " Bash after that"
            ),
        ),
    ],
)
async def test_a_report_as_text_meets_a_contract_when_only_text_follows_it(
    world: World, agent: str, error: str | None
) -> None:
    contract = Contract(require_completion_report=True)
    run = await world.until(await world.spawn(agent, verification=contract))

    assert run.outcome is not None
    assert run.outcome.error == error
    if error is None:
        assert run.report is not None
        assert (run.report.summary, run.attempt.reported.is_text) == ("all read", True)
