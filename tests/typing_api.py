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
    RunHandle,
    RunResult,
    SubagentsError,
    UsageError,
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
        )
        assert_type(run, RunHandle)
        assert_type(run.id, str)
        assert_type(run.warnings, tuple[str, ...])
        result = await run.wait(timeout_s=60)
        assert_type(result, RunResult)
        assert_type(result.outcome, Outcome)
        assert_type(result.ok, bool)
        return result.result


async def many_runs() -> tuple[RunHandle, ...]:
    async with Orchestrator.connect(session="agent:ci:main", cwd=".") as subagents:
        steps: Sequence[dict[str, object]] = [
            {"task": "a", "label": "a"},
            {"task": "b", "depends_on": ["a"], "include_dependency_result": True},
        ]
        handles = await subagents.plan(steps)
        again = await subagents.run("last")
        await again.steer("be brief")
        await again.answer("r-1:q1", "yes")
        await again.cancel(reason="enough")
        for message in await subagents.inbox():
            assert_type(message["text"], object)
        await subagents.attention()
        await again.timeline()
        return handles


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
