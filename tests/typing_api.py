"""The public API as a typed program uses it: read by mypy, never run."""

from collections.abc import Sequence
from pathlib import Path
from typing import assert_type

from subagents import (
    AlreadyRunning,
    ConfigError,
    Conflict,
    DaemonUnreachable,
    Forbidden,
    NotFound,
    Orchestrator,
    Outcome,
    PlanRun,
    RunFailed,
    RunHandle,
    RunResult,
    Subagents,
    SubagentsError,
    SyncRunHandle,
    Unanswered,
    UsageError,
    WorkerContext,
    worker,
)


async def one_run(home: Path) -> str | None:
    async with Orchestrator.open(home=home, config={"lanes.tests.slots": 2}) as subagents:
        assert_type(subagents, Orchestrator)
        run = await subagents.spawn(
            "make test",
            agent="command",
            label="tests",
            retry_count=2,
            verification={"artifacts": [{"path": "report.json", "json": True}]},
            budget={"max_tokens": 10_000},
            retry_backoff="fixed",
        )
        await subagents.spawn("x", retry_backoff="never")  # type: ignore[arg-type]
        await subagents.spawn("x", retry_cuont=2)  # type: ignore[call-arg]
        await subagents.spawn("x", label=3)  # type: ignore[arg-type]
        await subagents.spawn(
            "x", timeout="5m", retry=2, retry_delay="5s", budget={"max_seconds": "1h"}
        )
        await subagents.spawn("x", retry_delay=5)  # type: ignore[arg-type]
        assert_type(run, RunHandle)
        assert_type(run.id, str)
        assert_type(run.warnings, tuple[str, ...])
        result = await run.wait(timeout=60)
        assert_type(result, RunResult)
        assert_type(result.outcome, Outcome)
        assert_type(result.ok, bool)
        return result.result


async def many_runs() -> tuple[RunHandle, ...]:
    async with Orchestrator.connect(session="agent:ci:main", cwd=".") as subagents:
        steps: Sequence[PlanRun] = [
            {"task": "a", "label": "a"},
            {"task": "b", "depends_on": ["a"], "include_dependency_result": True},
        ]
        planned = await subagents.dry_run(steps, max_cost_usd=2)
        assert_type(planned.max_cost_usd, float | None)
        handles = await subagents.plan(steps)
        again = await subagents.get("last")
        await again.steer("be brief")
        await again.interrupt("enough")
        await (await again.continue_("and now?")).wait()
        await again.answer("r-1:q1", "yes")
        await again.cancel(reason="enough")
        async for message in subagents.inbox():
            assert_type(message.text, str)
        await subagents.attention()
        raised = await subagents.alerts(kind="stuck", limit=5)
        assert_type(raised.alerts[0].text, str)
        for stats in await subagents.agent_stats(by="tag", agent="build", days=7):
            assert_type(stats.attempt_count, int)
        await subagents.suggest_agents("review it", tags=["python"], cost_tier="cheap")
        await again.timeline()
        page = await again.log(grep="error|fail", since="5m", types=["tool"], limit=10)
        assert_type(page.total_lines, int)
        await again.log(after_seq=12, wait_seconds=20)
        async for line in again.follow():
            assert_type(line.text, str)
        assert_type((await again.summary()).summary, str)
        async for event in subagents.events(after=0, run=again.id, types=["completion"]):
            assert_type(event.seq, int)
        return handles


async def tools_for_a_model(subagents: Orchestrator) -> dict[str, object]:
    receipt = await subagents.tools.sessions_spawn("x", agent_id="reader", depends_on=["a"])
    assert_type(receipt, dict[str, object])
    await subagents.tools.sessions_spawn(batch=[{"task": "a"}, {"task": "b"}])
    await subagents.tools.sessions_wait(["r-1"], until="all", timeout_seconds=60)
    await subagents.tools.sessions_list(kinds=["run"], phase="running", limit=5)
    await subagents.tools.sessions_tree("r-1", depth=2)
    await subagents.tools.sessions_history("r-1", offset=10, include_tools=True)
    await subagents.tools.sessions_send("go on", label="a", mode="followup")
    await subagents.tools.subagents("log", "a", tail=20)
    await subagents.tools.agents_list("reads files", tags=["research"], cost_tier="cheap")
    await subagents.tools.respond_orchestrator_request("r-1:q1", "yes", decision="approve")
    return receipt


async def errors(subagents: Orchestrator) -> str:
    try:
        await subagents.spawn("x")
    except (UsageError, ConfigError, Forbidden, NotFound) as error:
        return f"{error.code}: {error.message} ({error.hint})"
    except (Conflict, AlreadyRunning, DaemonUnreachable) as error:
        return str(error.retryable)
    except SubagentsError as error:
        return str(error.to_wire()["code"])
    return "accepted"


def without_a_loop() -> str:
    with Subagents.connect() as subagents:
        assert_type(subagents, Subagents)
        run = subagents.spawn("make test", agent="command", timeout=60)
        assert_type(run, SyncRunHandle)
        subagents.spawn("x", retry_cuont=2)  # type: ignore[call-arg]
        subagents.spawn("x", label=3)  # type: ignore[arg-type]
        assert_type(run.wait(timeout=60), RunResult)
        assert_type(run.retry(), SyncRunHandle)
        try:
            done = subagents.run("make", check=True)
        except RunFailed as failed:
            return failed.result.outcome.status
        return done.label


@worker
async def a_worker(pages: list[int], context: WorkerContext) -> dict[str, int]:
    context.progress("reading", percent=50)
    context.report("read", status="done")  # type: ignore[arg-type]
    try:
        answer = await context.ask_async("on?", options=["yes", "no"], timeout="5m")
    except Unanswered as nobody:
        return {nobody.request.question: 0}
    if answer.decision == "yes":  # type: ignore[comparison-overlap]
        return {}
    return {"pages": len(pages)}


async def a_worker_is_still_its_function() -> None:
    assert_type(await a_worker([1], WorkerContext("[1]")), dict[str, int])
