"""A script says things as a plain program does, and each of them once."""

import asyncio
from collections.abc import Mapping

import pytest
from tests.runtimes.attempt_harness import Ended

from subagents.domain.run.signals import ResultSeen, ToolSeen
from subagents.domain.run.values import SessionKey, attempt_id, replace
from subagents.engine.kernel.system_clock import SystemClock
from subagents.errors import ConfigError
from subagents.extensions.testing.process_place import RUN
from subagents.ports import AttemptRef, Launch
from subagents.runtimes.scripted import ScriptedRuntime

SCRIPT: list[Mapping[str, object]] = [
    {"print": "one\n\ntwo"},
    {"said": {"subagents": "tool", "name": "Bash", "input": {"command": "ls"}, "exitCode": 1}},
    {"said": {"subagents": "error", "text": "rate limited", "api": True, "retry": "2/5"}},
    {"tool": "Read"},
    {"usage": {"tokens_in": 5}},
    {"result": "done"},
]
REF = AttemptRef(attempt_id=attempt_id(RUN, 1), run_id=RUN, number=1)


def _launch(script: list[Mapping[str, object]]) -> Launch:
    return Launch(
        attempt_id=REF.attempt_id,
        run_id=RUN,
        number=1,
        session_key=SessionKey("agent:a:subagent:1"),
        requester=SessionKey("agent:main:main"),
        agent_id="a",
        label="a",
        task="t",
        prompt="p",
        previous_results="",
        system_prompt="",
        cwd="/",
        options={"script": script},
    )


async def _watch(
    runtime: ScriptedRuntime, *, cursor: int = 0, positions: Mapping[str, int] | None = None
) -> Ended:
    return Ended(
        [each async for each in runtime.watch(REF, cursor=cursor, positions=positions or {})]
    )


@pytest.mark.requirement("transcript:scripted-workers-speak")
def test_a_scripted_worker_is_heard_like_a_plain_program() -> None:
    async def go() -> Ended:
        runtime = ScriptedRuntime(SystemClock())
        await runtime.start(_launch(SCRIPT))
        return await _watch(runtime)

    ended = asyncio.run(go())
    assert [(output.type.value, output.text) for output in ended.output] == [
        ("text", "one"),
        ("text", "two"),
        ("tool", "❌ Bash (exit 1)\nls"),
        ("error", "rate limited"),
        ("tool", "✅ Read"),
    ]
    assert [each.name for each in ended.signals if isinstance(each, ToolSeen)] == ["Bash", "Read"]
    assert ended.output[3].api_error is not None
    assert ended.positions == {"steps": 4}


@pytest.mark.requirement("transcript:heard-once-over-restarts")
async def test_a_script_watched_again_from_any_place_says_only_the_rest() -> None:
    runtime = ScriptedRuntime(SystemClock())
    await runtime.start(_launch(SCRIPT))
    whole = await _watch(runtime)
    for batch in whole.batches:
        for _, cursor in whole.pairs:
            again = await _watch(runtime, cursor=cursor, positions=batch.positions)
            rest = whole.batches[whole.batches.index(batch) + 1 :]
            assert again.output == [item for each in rest for item in each.items]
            assert again.pairs == [
                pair for pair in whole.pairs if pair[1] > cursor or (pair is whole.pairs[-1])
            ]


@pytest.mark.requirement("transcript:scripted-workers-speak")
def test_a_tool_that_was_not_given_is_neither_used_nor_heard() -> None:
    async def go() -> Ended:
        runtime = ScriptedRuntime(SystemClock())
        await runtime.start(replace(_launch(SCRIPT), tools_deny=("Bash",)))
        return await _watch(runtime)

    ended = asyncio.run(go())
    assert [each.name for each in ended.signals if isinstance(each, ToolSeen)] == ["Read"]
    assert not any("Bash" in output.text for output in ended.output)


@pytest.mark.requirement("transcript:scripted-workers-speak")
def test_what_is_no_structured_event_is_refused_before_it_is_played() -> None:
    runtime = ScriptedRuntime(SystemClock())
    runtime.check({"script": SCRIPT})
    with pytest.raises(ConfigError, match="script step 1: `said` is no structured event"):
        runtime.check({"script": [{"print": "x"}, {"said": {"subagents": "unheard"}}]})
    with pytest.raises(ConfigError, match='unknown key "says"'):
        runtime.check({"script": [{"says": "x"}]})


@pytest.mark.requirement("transcript:heard-once-over-restarts")
async def test_a_further_turn_is_heard_once() -> None:
    runtime = ScriptedRuntime(SystemClock())
    await runtime.start(_launch(SCRIPT))
    await _watch(runtime)
    ref = replace(REF, turns=2)
    await runtime.resume(ref, "go on", env={})
    first = Ended([each async for each in runtime.watch(ref, cursor=0, positions={"steps": 4})])
    positions = {"steps": 6, **first.positions}
    again = Ended([each async for each in runtime.watch(ref, cursor=0, positions=positions)])

    assert [output.text for output in first.output] == ["go on"]
    assert again.output == []
    assert again.signals == first.signals


@pytest.mark.requirement("scripted:continued")
def test_a_run_that_goes_on_plays_its_own_steps_or_answers_with_its_message() -> None:
    script: list[Mapping[str, object]]
    script = [{"result": "first"}, {"continued": True}, {"result": "later"}]
    going_on = {"prompt": "and now?", "native_session": "the session of before"}

    async def go(launch: Launch) -> tuple[str | None, list[str]]:
        runtime = ScriptedRuntime(SystemClock())
        started = await runtime.start(launch)
        ended = await _watch(runtime)
        texts = [each.text for each in ended.signals if isinstance(each, ResultSeen)]
        return started.native_session, texts

    assert asyncio.run(go(_launch(script))) == (REF.attempt_id, ["first"])
    later = replace(_launch(script), **going_on)
    assert asyncio.run(go(later)) == ("the session of before", ["later"])
    silent = replace(_launch(script[:1]), **going_on)
    assert asyncio.run(go(silent)) == ("the session of before", ["and now?"])
