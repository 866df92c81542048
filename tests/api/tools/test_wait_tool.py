"""``sessions_wait`` and the inbox: each result is handed over once, and what is not shown stays."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.api.tools.tool_callers import ToolCaller, completed, play

from subagents.api.tools import tool_registry as registry
from subagents.api.tools import wait_tool
from subagents.api.tools.repeatable import WAIT_S_MAX
from subagents.api.tools.tool import ANSWER_CHARS_MAX
from subagents.domain.run.values import RunId
from subagents.ports import InboxRow

VERBS = "answer|resume|steer|cancel|result|why|list|attention|retry|continue"
COMMAND = re.compile(rf"subagents (?:{VERBS})\b")
TOOL = re.compile(r"sessions_|respond_orchestrator_request|action=")
ITEM = {
    *("runId", "label", "outcome", "result", "resultBytes"),
    *("report", "verification", "usage", "artifacts"),
}


@pytest.mark.requirement("tools:wait:items")
async def test_what_ended_comes_as_the_documented_items(desk: ToolCaller) -> None:
    good = await desk.spawn("quick", label="good")
    bad = await desk.spawn("bad", label="bad")
    open_run = await desk.spawn("hang", label="open")
    await desk.until_phase(open_run, "running")
    answer = await desk.call("sessions_wait", runIds=[good, bad], until="all")
    looked = await desk.ok("sessions_wait", runIds=[open_run], timeoutSeconds=0)

    items = {each["label"]: each for each in completed(answer.structured)}
    assert set(answer.structured) == {"completed", "pending", "errors"}
    assert all(set(each) == ITEM for each in items.values())
    assert items["good"]["outcome"] == {"status": "ok", "reason": None, "error": None}
    assert items["good"]["result"] == "done"
    assert items["good"]["resultBytes"] == 4
    assert items["bad"]["outcome"]["reason"] == "exit_code"
    assert items["bad"]["result"] == "half"
    assert looked["pending"] == [
        {"runId": open_run, "label": "open", "phase": "running", "why": "attempt 1 is working"}
    ]


@pytest.mark.requirement("tools:wait:until")
async def test_any_returns_at_the_first_end_and_all_at_the_last(desk: ToolCaller) -> None:
    await desk.spawn("quick", label="first")
    await desk.spawn("slow", label="second")
    first = await desk.call("sessions_wait")
    await desk.acknowledge(first)
    both = await desk.call("sessions_wait", runIds=["first", "second"], until="all")

    assert [each["label"] for each in completed(first.structured)] == ["first"]
    assert {each["label"] for each in completed(both.structured)} == {"first", "second"}
    # The first was consumed: it is told again, and offered no more.
    assert len(first.offered) == len(both.offered) == 1


@pytest.mark.requirement("tools:wait:until")
async def test_a_run_that_ends_this_instant_is_pending_or_completed_never_neither(
    desk: ToolCaller,
) -> None:
    """Between its end in memory and its commit a run is in no list of the index."""
    for _ in range(40):
        run_id = await desk.spawn("quick")
        answer = await desk.call("sessions_wait", until="all", timeoutSeconds=15)
        await desk.acknowledge(answer)

        assert [each["runId"] for each in completed(answer.structured)] == [run_id]


@pytest.mark.requirement("tools:wait:timeout")
async def test_a_timeout_is_no_error_and_says_what_is_pending_and_why(desk: ToolCaller) -> None:
    run_id = await desk.spawn("hang", label="slow one")
    await desk.until_phase(run_id, "running")
    answer = await desk.call("sessions_wait", runIds=[run_id], timeoutSeconds=0.05)

    assert not answer.is_error
    assert completed(answer.structured) == []
    assert re.search(r"Still pending after \d+ s: 1\n", answer.text)
    assert f'{run_id} "slow one" running: attempt 1 is working' in answer.text
    assert "safe to repeat" in answer.text


@pytest.mark.requirement("tools:wait:returns-by-itself")
def test_a_long_wait_gives_signs_of_life_and_returns_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert WAIT_S_MAX < 280
    assert wait_tool.TELL_S <= 25
    monkeypatch.setattr(wait_tool, "WAIT_S_MAX", 1.0)
    monkeypatch.setattr(wait_tool, "TELL_S", 0.05)

    async def scenario(desk: ToolCaller) -> None:
        run_id = await desk.spawn("hang", label="long")
        await desk.until_phase(run_id, "running")
        async with asyncio.timeout(30):
            found = await desk.ok("sessions_wait", runIds=[run_id], timeoutSeconds=600)

        assert [each["runId"] for each in found["pending"]] == [run_id]
        assert len(desk.said) >= 3
        assert desk.said[0].startswith("waiting for long (running)")

    play(tmp_path, scenario)


@pytest.mark.requirement("tools:wait:errors")
async def test_runs_that_are_not_there_or_not_ones_own_are_named_and_the_others_waited_for(
    desk: ToolCaller,
) -> None:
    run_id = await desk.spawn("quick")
    theirs = await desk.elsewhere("other").spawn("quick")
    found = await desk.ok("sessions_wait", runIds=[run_id, "r-0000000000", theirs])
    none = await desk.call("sessions_wait", runIds=["nobody"], timeoutSeconds=600)

    assert [each["runId"] for each in found["completed"]] == [run_id]
    errors = {each["runId"]: each["error"] for each in found["errors"]}
    assert errors["r-0000000000"] == 'no run "r-0000000000"'
    assert "belongs to another session" in errors[theirs]
    assert not none.is_error
    assert none.structured["errors"] == [{"runId": "nobody", "error": 'no run "nobody"'}]
    assert 'nobody: no run "nobody"' in none.text


@pytest.mark.requirement("tools:refuses-bad-input")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"timeoutSeconds": 601}, "timeoutSeconds must be"),
        ({"timeoutSeconds": -1}, "timeoutSeconds must be"),
        ({"until": "some"}, 'until must be "any" or "all", not "some"'),
        ({"runIds": "r-1"}, "runIds must be a list, not text"),
        ({"runIds": ["x"] * 1001}, "runIds must be"),
        ({"runIds": ["a\0"]}, "runIds[0] must not contain a NUL byte"),
        ({"runIds": ["x" * 301]}, "runIds[0] must be text of length <= 300"),
        ({"timeout": 5}, 'did you mean "timeoutSeconds"?'),
    ],
)
async def test_a_wait_with_a_wrong_parameter_is_refused_by_its_name(
    desk: ToolCaller, arguments: dict[str, Any], says: str
) -> None:
    assert says in (await desk.refused("sessions_wait", **arguments)).text


@pytest.mark.requirement("tools:wait:consumed-once")
async def test_an_acknowledged_result_is_news_no_more_and_an_unacknowledged_one_stays(
    desk: ToolCaller,
) -> None:
    run_id = await desk.spawn("quick")
    first = await desk.call("sessions_wait")
    # Nobody acknowledged: the same reader may have it again, another one not yet.
    again = await desk.call("sessions_wait", timeoutSeconds=0)
    rival = ToolCaller(desk.home, replace(desk.caller, reader="rival"))
    taken = await rival.call("sessions_wait", runIds=[run_id], timeoutSeconds=0)

    assert again.offered == first.offered == (f"{run_id}:announce",)
    assert completed(taken.structured)[0]["runId"] == run_id
    assert taken.offered == ()
    assert await desk.acknowledge(again) == 1
    assert await desk.acknowledge(again) == 0
    later = await desk.call("sessions_wait", timeoutSeconds=0)
    assert completed(later.structured) == []
    assert "Nothing to wait for" in later.text


@pytest.mark.requirement("tools:wait:cancelled")
async def test_a_wait_whose_caller_went_away_leaves_nothing_taken(desk: ToolCaller) -> None:
    run_id = await desk.spawn("slow")
    for turns in range(12):
        waiting = asyncio.create_task(desk.call("sessions_wait", timeoutSeconds=15))
        if turns == 0:
            await desk.until_phase(run_id, "completed")
        # Cancelled at each step of the way, also in the moment in which it has its answer.
        for _ in range(turns):
            await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        if not waiting.cancelled():
            desk.home.services.engine.mailbox.release(waiting.result().offered, reader="desk")

        rival = await desk.home.services.engine.mailbox.offer_inbox(
            desk.caller.session, reader=f"rival-{turns}"
        )
        assert [row.message.run_id for row in rival] == [run_id]
        desk.home.services.engine.mailbox.release(
            [row.message.id for row in rival], reader=f"rival-{turns}"
        )


@pytest.mark.requirement("tools:wait:cancelled")
def test_a_wait_that_ends_while_its_caller_is_told_of_it_gives_back_when_it_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wait_tool, "TELL_S", 0.01)

    async def scenario(desk: ToolCaller) -> None:
        run_id = await desk.spawn("slow")
        telling = asyncio.Event()

        async def never_told(_text: str) -> None:
            telling.set()
            await asyncio.Event().wait()

        call = replace(desk.make(None, {"timeoutSeconds": 15}), tell=never_told)
        waiting = asyncio.create_task(registry.call_tool("sessions_wait", call))
        await telling.wait()
        await desk.until_phase(run_id, "completed")
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)

        assert [row.message.run_id for row in await rival_takes(desk)] == [run_id]

    play(tmp_path, scenario)


async def rival_takes(desk: ToolCaller) -> Sequence[InboxRow]:
    return await desk.home.services.engine.mailbox.offer_inbox(desk.caller.session, reader="rival")


@pytest.mark.requirement("tools:wait:cancelled")
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("sessions_wait", {}),
        ("subagents", {"action": "inbox"}),
        ("subagents", {"action": "result", "target": "last"}),
    ],
)
def test_an_answer_that_is_cancelled_while_it_is_finished_gives_back_what_it_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, arguments: dict[str, Any]
) -> None:
    async def scenario(desk: ToolCaller) -> None:
        run_id = await desk.spawn("quick")
        await desk.until_phase(run_id, "completed")
        counting = asyncio.Event()

        async def never_counted(*_: object, **__: object) -> int:
            counting.set()
            await asyncio.Event().wait()
            return 0

        monkeypatch.setattr(desk.home.services.engine.mailbox, "unread_count", never_counted)
        waiting = asyncio.create_task(desk.call(name, **arguments))
        await counting.wait()
        assert await rival_takes(desk) == ()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)

        assert [row.message.run_id for row in await rival_takes(desk)] == [run_id]

    play(tmp_path, scenario)


@pytest.mark.requirement("tools:wait:own-inbox")
async def test_looking_at_a_grandchild_does_not_take_what_its_requester_is_to_read(
    desk: ToolCaller,
) -> None:
    boss = await desk.worker("boss")
    grandchild = await boss.spawn("quick")
    seen = await desk.call("sessions_wait", runIds=[grandchild], timeoutSeconds=15)
    read = await desk.call("subagents", action="result", target=grandchild)
    own = await boss.call("sessions_wait")

    assert completed(seen.structured)[0]["result"] == "done"
    assert seen.offered == read.offered == ()
    assert own.offered == (f"{grandchild}:announce",)


@pytest.mark.requirement("tools:inbox-notice")
async def test_every_answer_ends_with_one_line_about_unread_messages(desk: ToolCaller) -> None:
    assert "inbox:" not in (await desk.call("sessions_list")).text
    ids = [await desk.spawn("quick"), await desk.spawn("quick")]
    for run_id in ids:
        await desk.until_phase(run_id, "completed")

    line = "inbox: 2 new (subagents action=inbox)"
    assert (await desk.call("sessions_list")).text.splitlines()[-1] == line
    assert (await desk.call("sessions_list", phas="x")).text.splitlines()[-1] == line
    # What the answer itself brings does not count, and what it was handed neither.
    first = await desk.call("sessions_wait", runIds=[ids[0]])
    assert first.text.splitlines()[-1] == "inbox: 1 new (subagents action=inbox)"
    await desk.acknowledge(first)
    assert "inbox: 1 new" in (await desk.call("agents_list")).text
    rest = await desk.call("subagents", action="inbox")
    assert "inbox:" not in rest.text
    await desk.acknowledge(rest)
    assert "inbox:" not in (await desk.call("sessions_tree")).text
    assert (await desk.call("subagents", action="inbox")).text == "No new messages."


@pytest.mark.requirement("tools:inbox-notice")
async def test_a_worker_hears_of_its_own_inbox_and_only_where_it_may_spawn(
    desk: ToolCaller,
) -> None:
    boss = await desk.worker("boss")
    child = await boss.spawn("quick")
    await boss.until_phase(child, "completed")

    assert "inbox: 1 new" in (await boss.call("sessions_list")).text
    assert "inbox:" not in (await desk.call("sessions_list")).text
    reported = await boss.call("report_progress", phase="thinking")
    assert "inbox:" not in reported.text


@pytest.mark.requirement("tools:inbox")
async def test_the_inbox_hands_over_a_page_that_fits_and_keeps_the_rest(desk: ToolCaller) -> None:
    ids = [await desk.spawn("long") for _ in range(30)]
    for run_id in ids:
        await desk.until_phase(run_id, "completed")
    all_of_them = await rival_takes(desk)
    engine = desk.home.services.engine
    engine.mailbox.release([row.message.id for row in all_of_them], reader="rival")
    ids = [row.message.run_id for row in all_of_them]  # as they ended
    seen: list[str] = []
    while len(seen) < 30:
        answer = await desk.call("subagents", action="inbox", limit=100)
        messages = answer.structured["messages"]

        assert isinstance(messages, list)
        assert len(answer.text) <= ANSWER_CHARS_MAX
        assert [each["id"] for each in messages] == list(answer.offered)
        assert messages[0]["text"].count("```") == 2
        seen += [each["runId"] for each in messages]
        await desk.acknowledge(answer)
        rest = await rival_takes(desk)
        assert [row.message.run_id for row in rest] == ids[len(seen) :]
        engine.mailbox.release([row.message.id for row in rest], reader="rival")
    assert seen == ids


@pytest.mark.requirement("wait:needs")
async def test_a_wait_returns_on_a_question_once_and_then_waits_for_the_end(
    desk: ToolCaller,
) -> None:
    run_id = await desk.spawn("hang", label="asker")
    await desk.until_phase(run_id, "running")
    waiting = asyncio.create_task(desk.ok("sessions_wait", runIds=[run_id], timeoutSeconds=60))
    engine = desk.home.services.engine
    asked = await engine.questions.ask(RunId(run_id), "which branch?", options=("a", "b"))
    async with asyncio.timeout(30):
        found = await waiting

    assert found["completed"] == []
    assert found["needs"] == [
        {
            "kind": "question",
            "runId": run_id,
            "label": "asker",
            "requestId": asked.id,
            "text": "which branch?",
            "options": ["a", "b"],
        }
    ]
    again = await desk.ok("sessions_wait", runIds=[run_id], timeoutSeconds=0.05)
    assert "needs" not in again
    (pending,) = again["pending"]
    assert f"respond_orchestrator_request requestId={asked.id}" in pending["why"]
    await engine.questions.ask(RunId(run_id), "and which tag?")
    (second,) = (await desk.ok("sessions_wait", timeoutSeconds=60))["needs"]
    assert second["text"] == "and which tag?"


@pytest.mark.requirement("wait:needs")
async def test_a_wait_returns_on_a_blocker_and_names_the_tool_that_answers_it(
    desk: ToolCaller,
) -> None:
    run_id = await desk.spawn("hang")
    await desk.until_phase(run_id, "running")
    await desk.home.services.engine.questions.notify(RunId(run_id), "disk full", priority="blocker")
    answer = await desk.call("sessions_wait", timeoutSeconds=60)

    how = f"Answer: respond_orchestrator_request requestId={run_id}:n1"
    assert f'"disk full"\n{how}' in answer.text
    assert "subagents answer" not in answer.text


@pytest.mark.requirement("texts:by-audience")
async def test_agents_are_told_of_tools_and_people_of_commands(desk: ToolCaller) -> None:
    run_id = await desk.spawn("hang")
    bad = await desk.spawn("bad")
    await desk.until_phase(run_id, "running")
    await desk.until_phase(bad, "completed")
    engine = desk.home.services.engine
    await engine.questions.ask(RunId(run_id), "which branch?", options=("a", "b"))
    await engine.questions.notify(RunId(run_id), "disk full", priority="blocker")
    calls: list[tuple[str, dict[str, Any]]] = [
        ("sessions_wait", {"timeoutSeconds": 1}),
        ("sessions_wait", {"runIds": [run_id], "timeoutSeconds": 0}),
        ("sessions_list", {}),
        ("sessions_tree", {}),
        ("sessions_send", {"sessionKey": bad, "message": "go on"}),
        *(
            ("subagents", {"action": action, "target": run_id, "message": "x"})
            for action in ("attention", "why", "status", "list", "inbox", "result", "steer")
        ),
        *(("subagents", {"action": each, "target": "r-nobody"}) for each in ("why", "kill")),
        ("subagents", {"action": "resume", "target": bad}),
        ("respond_orchestrator_request", {"requestId": "r-nobody:q1", "response": "x"}),
    ]
    for name, arguments in calls:
        answer = await desk.call(name, **arguments)
        said = f"{answer.text}\n{answer.structured}"
        found = COMMAND.findall(said)
        assert not found, (name, arguments, found)
    rows = await desk.home.services.engine.queries.inbox(desk.caller.session, unconsumed=False)
    assert len(rows) == 3
    for row in rows:
        assert TOOL.search(row.message.text) is None, row.message.text
