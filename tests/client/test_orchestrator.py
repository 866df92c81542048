"""The Python API, embedded and connected, with real workers."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.client.peer import http, peer

from subagents import (
    AlreadyRunning,
    Conflict,
    Forbidden,
    NotFound,
    Orchestrator,
    PlanRun,
    RunFailed,
    RunHandle,
    UsageError,
)
from subagents.api.wire.run_answers import RunResult, RunStatus, SentMessage
from subagents.client import orchestrator, run_handle
from subagents.client.client import AsyncClient, Client
from subagents.config.paths import Paths
from subagents.domain.run.outcome import Reason, Status
from subagents.domain.run.run import ReportStatus
from subagents.errors import DaemonUnreachable

SCRIPTED = {
    "agents.player.runtime": "scripted",
    "agents.player.script": [
        {"report": {"summary": "played"}},
        {"usage": {"tokensIn": 3, "tokensOut": 4}},
        {"result": "the end"},
    ],
    "agents.sitter.runtime": "scripted",
    "agents.sitter.script": [{"hang": True}],
    "agents.sitter.tools": ["report_completion"],
}


def embedded(tmp_path: Path, work: Callable[[Orchestrator], Awaitable[None]]) -> None:
    async def main() -> None:
        async with (
            asyncio.timeout(60),
            Orchestrator.open(home=tmp_path / "home", config=SCRIPTED, cwd=tmp_path) as sub,
        ):
            await work(sub)

    asyncio.run(main())


@pytest.mark.requirement("python:sessions")
def test_a_session_is_interrupted_and_gone_on_with(tmp_path: Path) -> None:
    async def work(sub: Orchestrator) -> None:
        sitter = await sub.spawn("sit", agent="sitter", label="s")
        while (await sitter.status()).phase != "running":  # noqa: ASYNC110 - asked, not told
            await asyncio.sleep(0.02)
        told = await sitter.continue_("sit still", idempotency_key="k")
        assert isinstance(told.receipt, SentMessage)
        assert (told.id, told.receipt.is_new, told.receipt.status) == (
            sitter.id,
            False,
            "steered",
        )
        assert (await sitter.continue_("sit still", idempotency_key="k")).id == sitter.id
        with pytest.raises(Conflict, match=rf"stands for run {sitter.id}, .* in message"):
            await sitter.continue_("sit down", idempotency_key="k")
        await sitter.interrupt("enough")
        ended = await sitter.wait()
        assert (ended.outcome.status, ended.outcome.reason) == (Status.PARTIAL, Reason.INTERRUPTED)
        again = await sitter.continue_("and now?")
        done = await again.wait()

        assert again.id != sitter.id
        assert (done.ok, done.label, done.result) == (True, "s", "and now?")
        command = await sub.spawn("true", agent="command")
        await command.wait()
        with pytest.raises(Conflict, match="cannot continue a session"):
            await command.continue_("more")

    embedded(tmp_path, work)


@pytest.mark.requirement("python:embedded")
def test_a_spawned_run_is_awaited_verified_and_consumed(tmp_path: Path) -> None:
    async def work(sub: Orchestrator) -> None:
        run = await sub.spawn(
            "echo '[1, 2]' > out.json; echo made it",
            agent="command",
            label="maker",
            verification={"artifacts": [{"path": "out.json", "json": True, "min_items": 2}]},
        )
        assert (run.label, run.warnings) == ("maker", ())
        done = await run.wait()

        assert done.ok
        assert (done.run_id, done.label, done.result) == (run.id, "maker", "made it")
        assert done.verification is not None
        assert [check.target for check in done.verification.checks] == ["out.json"]
        assert [each async for each in sub.inbox()] == []  # waiting consumed it
        with pytest.warns(DeprecationWarning, match="timeout_s is timeout now"):
            again = await (await sub.get("maker")).wait(timeout_s=5)
        assert again.result == "made it"  # a handle can be had again, and waiting is repeatable

    embedded(tmp_path, work)


@pytest.mark.requirement("python:inbox-ack")
def test_a_long_result_that_could_not_be_fetched_was_not_handed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def gone(*_: object) -> RunResult:
        raise DaemonUnreachable("it was killed between two pages")

    async def work(sub: Orchestrator) -> None:
        run = await sub.spawn("seq 20000", agent="command")
        with monkeypatch.context() as patch:
            patch.setattr(run_handle, "whole", gone)
            with pytest.raises(DaemonUnreachable):
                await run.wait()
        assert [each.run_id async for each in sub.inbox()] == [run.id]

    embedded(tmp_path, work)


@pytest.mark.requirement("python:log")
def test_a_log_is_followed_searched_and_summed_up(tmp_path: Path) -> None:
    async def work(sub: Orchestrator) -> None:
        run = await sub.spawn("echo one; sleep 0.3; echo an error >&2; echo two", agent="command")
        followed = [line async for line in run.follow()]

        text = [line.text for line in followed if line.type in {"text", "error"}]
        assert sorted(text) == ["an error", "one", "two"]
        assert followed[-1].text.endswith("run ended: ok")
        assert [line.seq for line in followed] == [*range(1, len(followed) + 1)]
        page = await run.log(grep="error", types=["error"], since="1h", limit=5)
        assert page.total_lines == 1
        assert (await run.log(offset=0, limit=2)).lines == followed[:2]
        assert "task: echo one" in (await run.summary()).summary
        with pytest.raises(UsageError, match="limit must be"):
            await run.log(limit=0)

    embedded(tmp_path, work)


@pytest.mark.requirement("python:scripted")
def test_agents_can_be_scripted_for_the_tests_of_a_users_own_flow(tmp_path: Path) -> None:
    async def work(sub: Orchestrator) -> None:
        done = await (await sub.spawn("anything", agent="player")).wait()

        assert done.result == "the end"
        assert done.report is not None
        assert (done.report.summary, done.report.status) == ("played", ReportStatus.COMPLETE)
        assert done.usage is not None
        assert (done.usage.tokens_in, done.usage.cost_usd) == (3, None)

    embedded(tmp_path, work)


@pytest.mark.requirement("python:dry-run")
def test_a_dry_run_says_what_a_plan_would_come_to_and_starts_nothing(tmp_path: Path) -> None:
    async def scenario(sub: Orchestrator) -> None:
        steps: list[PlanRun] = [
            {"task": "echo a", "agent": "command", "label": "a"},
            {"task": "echo b", "agent": "command", "depends_on": ["a"]},
        ]
        found = await sub.dry_run(steps, max_cost_usd=2.5, env={"TOKEN": "x"})
        first, second = found.runs
        assert (first.starts_at_once, second.waits_for[0].label) == (True, "a")
        assert (found.max_cost_usd, first.environment) == (2.5, ["TOKEN"])
        with pytest.raises(NotFound) as refused:
            await sub.dry_run([{"task": "x", "agent": "nobody"}])
        assert refused.value.details["field"] == "agent"
        assert await sub.list() == []

    embedded(tmp_path, scenario)


@pytest.mark.requirement("python:plan")
def test_a_plan_fans_in_and_is_refused_whole_when_it_goes_in_a_circle(tmp_path: Path) -> None:
    async def work(sub: Orchestrator) -> None:
        *_, last = await sub.plan(
            [
                {"task": "echo one", "agent_id": "command", "label": "a"},
                {"task": "echo two", "agent_id": "command", "label": "b"},
                {
                    "task": "cat",
                    "agent_id": "command",
                    "label": "c",
                    "depends_on": ["a", "b"],
                    "include_dependency_result": True,
                },
            ]
        )
        result = (await last.wait()).result
        assert result == "[Previous step result: a]:\none\n\n[Previous step result: b]:\ntwo"

        circle: list[PlanRun] = [
            {"task": "x", "agent_id": "command", "label": "d", "depends_on": ["e"]},
            {"task": "x", "agent_id": "command", "label": "e", "depends_on": ["d"]},
        ]
        with pytest.raises(UsageError, match="Circular dependency: "):
            await sub.plan(circle)
        with pytest.raises(NotFound):
            await sub.get("d")

    embedded(tmp_path, work)


@pytest.mark.requirement("python:errors")
def test_errors_are_those_of_every_other_client(tmp_path: Path) -> None:
    async def work(sub: Orchestrator) -> None:
        with pytest.raises(UsageError, match='did you mean "retry_count"'):
            await sub.spawn("x", agent="command", retry_cuont=3)  # type: ignore[call-arg]  # what a checker would have found
        with pytest.raises(NotFound, match="did you mean 'command'"):
            await sub.spawn("x", agent="comand")
        with pytest.raises(Forbidden, match="tools_allow can only narrow") as refused:
            await sub.spawn("x", agent="sitter", tools_allow=["read"])
        assert refused.value.guardrail == "tools"

    embedded(tmp_path, work)


@pytest.mark.requirement("python:control", "budget:raised")
def test_a_live_run_is_steered_timed_out_on_and_cancelled(tmp_path: Path) -> None:
    async def work(sub: Orchestrator) -> None:
        run = await sub.spawn("x", agent="sitter", budget={"max_tokens": 1_000})
        with pytest.raises(TimeoutError):
            await run.wait(timeout=0.05)
        assert await run.steer("be quick", add_tokens=500) == "steered"
        budget = (await run.status()).budget
        assert budget is not None
        assert budget.max_tokens == 1_500
        await run.cancel("enough")
        done = await run.wait()
        assert (done.outcome.status, done.outcome.reason) == (
            Status.CANCELLED,
            Reason.CANCELLED_BY_CALLER,
        )
        assert done.outcome.error == "enough"
        with pytest.raises(Conflict):
            await run.steer("too late")
        assert [event.type for event in await run.timeline()][:3] == [
            *("Spawned", "SlotGranted", "AttemptStarted"),
        ]
        assert (await run.status()).phase

    embedded(tmp_path, work)


@pytest.mark.requirement("python:questions")
def test_a_worker_of_an_embedded_orchestrator_can_ask(tmp_path: Path) -> None:
    async def work(sub: Orchestrator) -> None:
        ask = f'"{sys.executable}" -m subagents ask "red or blue?" --timeout 30s'
        run = await sub.spawn(ask, agent="command")
        while not (open_questions := await sub.attention()):  # noqa: ASYNC110 - another process asks
            await asyncio.sleep(0.02)
        assert open_questions[0].text == "red or blue?"
        await run.answer(str(open_questions[0].request_id), "blue")
        assert (await run.wait()).result == "blue"

    embedded(tmp_path, work)


@pytest.mark.requirement("python:one-owner")
async def test_a_home_has_one_owner_and_its_workers_outlive_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with asyncio.timeout(60):
        async with Orchestrator.open(home=home, cwd=tmp_path) as sub:
            with pytest.raises(AlreadyRunning):
                async with Orchestrator.open(home=home, config=SCRIPTED):
                    pytest.fail("a second owner")
            async with Orchestrator.open(home=home, cwd=tmp_path) as guest:
                assert (await guest.run("echo hello", agent="command")).result == "hello"
            slow = "while [ ! -e go ]; do sleep 0.02; done; echo went"
            run_id = (await sub.spawn(slow, agent="command")).id
        (tmp_path / "go").touch()
        async with Orchestrator.open(home=home, cwd=tmp_path) as sub:
            done = await (await sub.get(run_id)).wait()
            assert (done.outcome.status, done.result) == (Status.OK, "went")


@pytest.mark.requirement("python:connected")
def test_connect_starts_the_daemon_and_leaves_it_running(tmp_path: Path) -> None:
    home = tmp_path / "home"

    async def main() -> str:
        async with (
            asyncio.timeout(60),
            Orchestrator.connect(home=home, cwd=tmp_path, session="agent:main:tests") as sub,
        ):
            run = await sub.spawn("echo connected", agent="command")
            assert (await run.wait()).result == "connected"
            return run.id

    run_id = asyncio.run(main())
    with Client(Paths.resolve({"SUBAGENTS_HOME": str(home)}).socket) as client:
        try:
            assert client.get(f"/v1/runs/{run_id}/status")["requester"] == "agent:main:tests"
        finally:
            client.post("/v1/shutdown")


@pytest.mark.requirement("python:agents")
def test_a_program_asks_who_fits(tmp_path: Path) -> None:
    async def work(sub: Orchestrator) -> None:
        best, *others = await sub.suggest_agents("something to play", cost_tier="free")
        assert (best.id, best.reasons) == ("player", ["its description has: play"])
        assert [(each.id, each.reasons) for each in others] == [("command", []), ("sitter", [])]

    embedded(tmp_path, work)


@pytest.mark.requirement("environment:shell", "environment:given")
def test_a_programs_own_variables_and_those_it_names_reach_its_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", "/some/venv")

    async def work(sub: Orchestrator) -> None:
        run = await sub.spawn("echo $VIRTUAL_ENV $FOO", agent="command", env={"FOO": "bar"})
        assert (await run.wait()).result == "/some/venv bar"
        (again,) = await sub.plan([{"task": "echo $FOO", "agent_id": "command"}], env={"FOO": "p"})
        assert (await again.wait()).result == "p"
        with pytest.raises(UsageError, match="no name of a variable"):
            await sub.spawn("x", agent="command", env={"A B": ""})

    embedded(tmp_path, work)


@pytest.mark.requirement("python:run", "python:wait-many")
def test_a_program_does_what_the_command_line_can(tmp_path: Path) -> None:
    async def work(sub: Orchestrator) -> None:
        with pytest.raises(RunFailed, match="ended error") as failed:
            await sub.run("exit 3", agent="command", check=True)
        assert not failed.value.result.ok
        for selector in ("last", failed.value.result.run_id):
            with pytest.raises(UsageError, match="names a run"):
                await sub.run(selector, agent="command")
        slow = await sub.spawn("sit", agent="sitter", label="slow", timeout="5m", retry=1)
        first, second = await sub.plan(
            [{"task": "echo a", "agent": "command"}, {"task": "echo b", "agent": "command"}]
        )
        assert [each.result for each in await sub.wait_all([second, first])] == ["b", "a"]
        assert [each.result for each in await sub.wait_any([slow, first])] == ["a"]
        with pytest.raises(TimeoutError, match=slow.id):
            await sub.wait_all([slow, first], timeout=0)
        again = await first.retry()
        assert (again.id != first.id, (await again.wait()).result) == (True, "a")
        detail = await slow.show()
        assert (detail.spec["runTimeoutSeconds"], detail.spec["retryCount"]) == (300, 1)
        brief = await sub.spawn("exit 0", agent="command", retry_delay="1m", retry_max_time="1h")
        spec = (await brief.show()).spec
        assert (spec["retryDelay"], spec["retryMaxTime"]) == (60_000, 3_600_000)
        with pytest.raises(UsageError, match="retry_delay must be a text with its unit") as unclear:
            await sub.spawn("x", retry_delay=500)  # type: ignore[arg-type]
        assert unclear.value.hint == 'retry_delay="500ms", or "5s"'
        assert (await slow.why()).why
        assert (await slow.tree()).run_id == slow.id
        assert [each.run_id for each in await sub.list(label="slow")] == [slow.id]
        assert slow.id in {each.run_id for each in (await sub.tree()).roots}
        assert (await sub.list(directory="/nowhere", label="slow")) == []
        assert (await sub.tree(text="SLOW", since="1h", outcome="lost")).roots == []
        await slow.pause()
        assert (await slow.status()).paused
        await slow.resume()
        await slow.cancel()
        assert (await slow.wait()).outcome.status == "cancelled"
        assert list(await slow.artifacts()) == []
        with pytest.raises(UsageError, match="are the same"):
            await sub.spawn("x", retry=1, retry_count=2)

    embedded(tmp_path, work)


@pytest.mark.requirement("python:inbox")
async def test_messages_that_lay_here_for_long_are_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orchestrator, "INBOX_FRESH_S", -1.0)
    pages = [["m-1", "m-2"], []]  # another reader has the second one by now

    def reply(request: bytes) -> bytes:
        is_ack = request.startswith(b"POST /v1/inbox/ack ")
        return http({} if is_ack else {"messages": [{"id": each} for each in pages.pop(0)]})

    with peer(tmp_path, reply) as found:
        async with AsyncClient(found.path) as client:
            messages = Orchestrator(client, cwd=tmp_path).inbox()
            assert [each.id async for each in messages] == ["m-1"]


@pytest.mark.requirement("python:errors")
async def test_a_request_id_is_no_path(tmp_path: Path) -> None:
    with peer(tmp_path, lambda _: http({})) as found:
        async with AsyncClient(found.path) as client:
            await RunHandle(client, RunStatus(run_id="r-1")).answer("r-1:q1 /é", "yes")
    assert found.requests[0].startswith(b"POST /v1/requests/r-1%3Aq1%20%2F%C3%A9/respond HTTP")
