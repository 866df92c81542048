"""Verifies contracts and checks single artifacts, for the tests beside it."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from tests.builders import an_attempt

from subagents.domain.run.baseline import Baseline
from subagents.domain.run.outcome import (
    Check,
    Verification,
)
from subagents.domain.run.run import Attempt
from subagents.domain.run.spec import Artifact, Contract
from subagents.engine.kernel.threads import DaemonThreads
from subagents.engine.verification.command_sandbox import CommandSandbox
from subagents.engine.verification.verifier import Verifier
from subagents.engine.verification.work_root import WorkRoot
from subagents.ports import OffLoop

NOW_MS = 1_700_000_000_000


class FixedClock:
    def now_ms(self) -> int:
        return NOW_MS

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def before(contract: Contract, workspace: Path) -> Baseline:
    """What the contract's files are now."""
    threads = DaemonThreads("test-looks")
    verifier = Verifier(threads, FixedClock(), commands_allowed=False)
    try:
        return asyncio.run(verifier.before(contract, WorkRoot(str(workspace)))).baseline
    finally:
        threads.close()


def verify(
    contract: Contract,
    workspace: Path,
    *,
    attempt: Attempt | None = None,
    commands_allowed: bool = True,
    off_loop: OffLoop | None = None,
    marker_env: dict[str, str] | None = None,
    baseline: Baseline | None = None,
    sandbox: CommandSandbox | None = None,
    commands_trusted: bool = False,
    pinned: str | None = None,
    compares: bool = False,
) -> Verification:
    threads = DaemonThreads("test-checks")
    verifier = Verifier(
        off_loop or threads, FixedClock(), commands_allowed=commands_allowed, sandbox=sandbox
    )

    async def run() -> Verification:
        return await asyncio.wait_for(
            verifier.verify(
                contract,
                root=WorkRoot(str(workspace), pinned),
                attempt=attempt or an_attempt(),
                marker_env=marker_env or {},
                baseline=baseline,
                commands_trusted=commands_trusted,
                compares=compares,
            ),
            timeout=20,
        )

    try:
        return asyncio.run(run())
    finally:
        threads.close()


def check(artifact: Artifact, workspace: Path) -> Check:
    """One artifact, by the way the verifier takes: in process or in a process of its own.

    What takes a time that grows faster than its input is not done when this time is over.
    """
    verification = verify(
        Contract(artifacts=(artifact,), verification_timeout_ms=60_000), workspace
    )
    assert len(verification.checks) == 1
    return verification.checks[0]


def failed(result: Check) -> str:
    """The reason of a check that failed because of the work, not of the checker."""
    assert not result.passed
    assert not result.could_not_check
    assert result.reason is not None
    return result.reason


def within(seconds: float, condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True
