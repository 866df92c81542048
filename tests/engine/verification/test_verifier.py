"""Checks run on real files and real processes; each kind once good and once bad."""

import asyncio
import os
import socket
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest
from tests.builders import an_attempt
from tests.engine.verification.checking import (
    FixedClock,
    failed,
    verify,
    within,
)
from tests.live_processes import carrying, is_running

from subagents.domain.run.baseline import Fingerprint
from subagents.domain.run.outcome import (
    Check,
    CheckType,
    Verdict,
    Verification,
)
from subagents.domain.run.run import Attempt, LastStep, Report, Reported, ReportStatus
from subagents.domain.run.spec import Artifact, Contract
from subagents.domain.run.values import replace
from subagents.engine.kernel.threads import DaemonThreads
from subagents.engine.verification import artifacts, work_root
from subagents.engine.verification.artifacts import (
    check_artifact,
)
from subagents.engine.verification.verifier import Verifier, check_schemas
from subagents.engine.verification.work_root import WorkRoot

T = TypeVar("T")

HANGS_S = 60.0
"""What takes longer was not ended: it would go on for ten minutes at least."""

NOW_MS = 1_700_000_000_000


DONE = Report(summary="done")


# ── existence and size ──────────────────────────────────────────────────────────────────────────


# ── JSON ────────────────────────────────────────────────────────────────────────────────────────


# ── where a path may lead ───────────────────────────────────────────────────────────────────────


# ── what is no plain file ───────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("verification:artifact:irregular")
def test_nothing_but_a_regular_file_is_read_and_nothing_hangs(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "file").touch()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        contract = Contract(
            artifacts=tuple(
                Artifact(path=path, json=True)
                for path in (
                    "fifo",
                    "folder",
                    "socket",
                    "/dev/null",
                    "loop",
                    "dangling",
                    "file/below",
                    "n" * 300,
                )
            )
        )

        reasons = [failed(one) for one in verify(contract, tmp_path).checks]

    assert [reason.split(" ", 2)[2] for reason in reasons] == [
        "is a FIFO, not a regular file",
        "is a directory, not a regular file",
        "is a socket, not a regular file",
        "is a character device, not a regular file",
        "cannot be read: Too many levels of symbolic links",
        "does not exist",
        "cannot be read: Not a directory",
        "cannot be read: File name too long",
    ]


@pytest.mark.requirement("verification:artifact:irregular")
def test_a_fifo_put_in_place_between_look_and_open_does_not_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_text("x")

    def swap_after_look(mode: int) -> None:
        monkeypatch.undo()
        (tmp_path / "a").unlink()
        os.mkfifo(tmp_path / "a")
        work_root._refuse_irregular(mode)

    monkeypatch.setattr(work_root, "_refuse_irregular", swap_after_look)

    assert "is a FIFO" in failed(check_artifact(Artifact(path="a"), WorkRoot(str(tmp_path))))


@pytest.mark.requirement("verification:timeout")
def test_hashing_a_huge_file_ends_with_the_time_limit(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(2**42)
    contract = Contract(
        artifacts=(Artifact(path="huge", sha256="0" * 64), Artifact(path="huge")),
        verification_timeout_ms=100,
    )

    begun = time.monotonic()
    result = verify(contract, tmp_path)

    assert time.monotonic() - begun < HANGS_S
    assert result.verdict is Verdict.FAILED
    assert [one.reason for one in result.checks] == ["timed out after 100 ms"] * 2


@pytest.mark.requirement("verification:could-not-check")
def test_the_checkers_own_trouble_is_not_held_against_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.json").write_text("[]")

    def disk_error(*_: object) -> object:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(artifacts, "_decode", disk_error)
    broken = verify(Contract(artifacts=(Artifact(path="a.json", json=True),)), tmp_path)
    for also in (
        Artifact(path="*.json", min_files=2, json=True),
        Artifact(path="a.json", newer_than="a.json", json=True),
    ):
        assert verify(Contract(artifacts=(also,)), tmp_path).verdict is Verdict.FAILED
    monkeypatch.setattr(sys, "executable", "/bin/false")
    crashed = verify(Contract(artifacts=(Artifact(path="a.json", schema=True),)), tmp_path)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nowhere"))
    unstarted = verify(Contract(artifacts=(Artifact(path="a.json", schema=True),)), tmp_path)

    for result, reason in (
        (broken, "File a.json could not be checked: Input/output error"),
        (crashed, "the checker ended with 1: "),
        (unstarted, "could not start the checker: [Errno 2]"),
    ):
        assert result.verdict is Verdict.COULD_NOT_CHECK
        assert result.checks[0].could_not_check
        assert str(result.checks[0].reason).startswith(reason)


# ── JSON Schema ─────────────────────────────────────────────────────────────────────────────────


def exponential(depth: int) -> dict[str, object]:
    """Under 4 KiB; checking anything by it takes 2**depth steps inside one library call."""
    definitions: dict[str, object] = {
        f"d{level}": {"allOf": [{"$ref": f"#/$defs/d{level + 1}"}] * 2} for level in range(depth)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**definitions, f"d{depth}": {"type": "integer"}}}


@pytest.mark.requirement("verification:schema:bounded")
def test_an_exponential_schema_ends_with_the_time_limit_and_the_loop_stays_free(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.json").write_text("1")
    contract = Contract(
        artifacts=(Artifact(path="a.json", schema=exponential(60)),), verification_timeout_ms=700
    )
    turns = 0

    async def run() -> Verification:
        verifier = Verifier(DaemonThreads("schema"), FixedClock(), commands_allowed=False)
        work = asyncio.ensure_future(
            verifier.verify(
                contract,
                root=WorkRoot(str(tmp_path)),
                attempt=an_attempt(),
                marker_env={"SUBAGENTS_RUN_ID": str(tmp_path)},
            )
        )
        nonlocal turns
        while not work.done():
            await asyncio.wait({work}, timeout=0.01)
            turns += 1
        return work.result()

    check_schemas(contract)
    result = asyncio.run(asyncio.wait_for(run(), timeout=HANGS_S))

    assert result.verdict is Verdict.FAILED
    assert result.checks[0].reason == "timed out after 700 ms"
    assert turns > 2
    assert within(HANGS_S, lambda: not carrying("SUBAGENTS_RUN_ID", str(tmp_path)))


# ── completion report ───────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("verification:report")
@pytest.mark.parametrize(
    ("attempt", "reason"),
    [
        (an_attempt(reported=Reported(report=DONE), last=LastStep(is_report=True)), None),
        (
            an_attempt(reported=Reported(report=DONE, is_text=True), last=LastStep(is_report=True)),
            None,
        ),
        (
            an_attempt(
                reported=Reported(report=Report(summary="half", status=ReportStatus.PARTIAL)),
                last=LastStep(is_report=True),
            ),
            None,
        ),
        (an_attempt(), "The worker gave no completion report"),
        (
            an_attempt(
                reported=Reported(problem="the completion report in the text has no summary")
            ),
            (
                "The worker gave no completion report: the completion report in the text has no"
                " summary"
            ),
        ),
        (
            an_attempt(reported=Reported(report=DONE)),
            "The completion report was not the worker's last tool call",
        ),
        (
            an_attempt(reported=Reported(report=DONE), last=LastStep(tool="Bash")),
            "The completion report was not the worker's last tool call: it used Bash after that",
        ),
        (
            an_attempt(reported=Reported(report=DONE, is_text=True), last=LastStep(tool="Bash")),
            "The completion report was not the worker's last word: it used Bash after that",
        ),
        (
            an_attempt(
                reported=Reported(report=Report(summary="no disk", status=ReportStatus.FAILED)),
                last=LastStep(is_report=True),
            ),
            "The worker reported failed: no disk",
        ),
    ],
)
def test_a_required_report_is_the_last_act_and_does_not_say_failed(
    tmp_path: Path, attempt: Attempt, reason: str | None
) -> None:
    contract = Contract(require_completion_report=True)

    result = verify(contract, tmp_path, attempt=attempt)

    assert result.verdict is (Verdict.PASSED if reason is None else Verdict.FAILED)
    assert [(one.type, one.reason) for one in result.checks] == [
        (CheckType.COMPLETION_REPORT, reason)
    ]
    assert result.verified_at_ms == NOW_MS


# ── commands ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("verification:command")
def test_a_command_passes_with_exit_0_and_keeps_the_tail_of_its_output(tmp_path: Path) -> None:
    (tmp_path / "here").touch()
    contract = Contract(
        commands=(
            "ls; echo to stderr >&2",
            "seq 1 100000; exit 3",
            "kill -9 $$",
            "cat",  # standard input is empty, not ours
        )
    )

    result = verify(contract, tmp_path)

    assert [one.reason for one in result.checks] == [
        None,
        "The command exited with 3, expected 0: 100000",
        "The command was killed by signal 9",
        None,
    ]
    assert result.checks[0].evidence == f"exit 0, {OFF}\nhere\nto stderr"
    tail = str(result.checks[1].evidence)
    assert tail.endswith("99999\n100000")
    assert len(tail) <= 2048 + len(f"exit 3, {OFF}\n")
    assert result.verdict is Verdict.FAILED


@pytest.mark.requirement("verification:command:could-not-check")
def test_a_command_that_does_not_exist_says_nothing_about_the_work(tmp_path: Path) -> None:
    (tmp_path / "script").write_text("not executable")
    contract = Contract(commands=("no-such-program-anywhere", "./script"))

    result = verify(contract, tmp_path)
    no_workspace = verify(Contract(commands=("true",)), tmp_path / "gone")

    assert result.verdict is Verdict.COULD_NOT_CHECK
    assert [one.reason for one in result.checks] == [
        "a program of the command was not found (exit 127)",
        "a program of the command is not executable (exit 126)",
    ]
    assert no_workspace.verdict is Verdict.COULD_NOT_CHECK


@pytest.mark.requirement("contract:commands:gated")
def test_commands_do_not_run_once_the_operator_forbids_them(tmp_path: Path) -> None:
    result = verify(Contract(commands=("touch ran",)), tmp_path, commands_allowed=False)

    assert result.verdict is Verdict.COULD_NOT_CHECK
    assert "dangerously_allow_validation_commands" in str(result.checks[0].reason)
    assert not (tmp_path / "ran").exists()


@pytest.mark.requirement("verification:command:environment")
def test_a_command_sees_the_markers_but_none_of_our_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUBAGENTS_TOKEN", "planted-secret")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "planted-secret")

    result = verify(
        Contract(commands=("env",)), tmp_path, marker_env={"SUBAGENTS_RUN_ID": "r-1234567890"}
    )

    seen = str(result.checks[0].evidence).splitlines()
    assert "SUBAGENTS_RUN_ID=r-1234567890" in seen
    assert any(line.startswith("PATH=") for line in seen)
    assert not any("planted-secret" in line for line in seen)


@pytest.mark.requirement("verification:command:killed")
def test_a_command_that_ignores_term_dies_with_its_group_at_the_limit(tmp_path: Path) -> None:
    command = "trap '' TERM; sleep 600 & echo $! $$ > pids; echo working; wait"
    contract = Contract(commands=(command, "touch late"), verification_timeout_ms=1000)

    begun = time.monotonic()
    result = verify(contract, tmp_path)

    assert time.monotonic() - begun < HANGS_S
    assert result.verdict is Verdict.FAILED
    assert [one.reason for one in result.checks] == ["timed out after 1000 ms"] * 2
    assert result.checks[0].evidence == f"exit -9, {OFF}\nworking"
    assert not (tmp_path / "late").exists()
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert len(pids) == 2
    assert all(within(HANGS_S, lambda pid=pid: not is_running(pid)) for pid in pids)  # type: ignore[misc]


@pytest.mark.requirement("verification:command:killed")
def test_what_a_command_leaves_behind_is_killed_and_does_not_hold_up_the_verdict(
    tmp_path: Path,
) -> None:
    begun = time.monotonic()
    result = verify(Contract(commands=("sleep 600 & echo $! > pid; echo done",)), tmp_path)

    assert result.verdict is Verdict.PASSED
    assert time.monotonic() - begun < HANGS_S
    assert within(HANGS_S, lambda: not is_running(int((tmp_path / "pid").read_text())))


@pytest.mark.requirement("verification:timeout")
def test_the_limit_holds_over_all_checks_and_keeps_the_finished_ones(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    contract = Contract(
        artifacts=(Artifact(path="a"),),
        commands=("true", "sleep 60", "true"),
        verification_timeout_ms=1500,
    )

    result = verify(contract, tmp_path)

    assert [one.passed for one in result.checks] == [True, True, False, False]
    assert result.verdict is Verdict.FAILED
    assert {one.reason for one in result.failures} == {"timed out after 1500 ms"}


@pytest.mark.requirement("verification:timeout")
def test_a_check_stuck_in_the_kernel_holds_up_neither_the_verdict_nor_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a dead network disk: the call cannot be ended by anybody."""
    release = threading.Event()
    real_check = check_artifact

    def stuck(
        artifact: Artifact,
        root: WorkRoot,
        *,
        before: Fingerprint | None,
        abandoned: Callable[[], bool],
    ) -> Check:
        if artifact.path == "dead":
            release.wait(2 * HANGS_S)
        return real_check(artifact, root, before=before, abandoned=abandoned)

    monkeypatch.setattr("subagents.engine.verification.verifier.check_artifact", stuck)
    (tmp_path / "a").touch()
    threads = DaemonThreads("stuck")
    begun = time.monotonic()
    first = verify(
        Contract(artifacts=(Artifact(path="dead"),), verification_timeout_ms=50),
        tmp_path,
        off_loop=threads,
    )
    second = verify(Contract(artifacts=(Artifact(path="a"),)), tmp_path, off_loop=threads)
    threads.close()
    took = time.monotonic() - begun
    release.set()

    assert took < HANGS_S
    assert first.checks[0].reason == "timed out after 50 ms"
    assert first.verdict is Verdict.FAILED
    assert second.verdict is Verdict.PASSED


@pytest.mark.requirement("verification:timeout")
def test_the_limit_holds_also_when_the_work_runs_in_line(tmp_path: Path) -> None:
    """The simulator runs it so: no timer of the loop can fire meanwhile."""

    async def in_line(work: Callable[[], T]) -> T:
        return work()

    def off_loop(work: Callable[[], T], /) -> Awaitable[T]:
        return in_line(work)

    begun = time.monotonic()
    result = verify(
        Contract(commands=("sleep 600",), verification_timeout_ms=100), tmp_path, off_loop=off_loop
    )

    assert time.monotonic() - begun < HANGS_S
    assert result.checks[0].reason == "timed out after 100 ms"


# ── verdict, baseline, repetition ───────────────────────────────────────────────────────────────


@pytest.mark.requirement("verification:verdict")
def test_one_failed_check_fails_the_verdict_whatever_else_could_not_be_checked(
    tmp_path: Path,
) -> None:
    contract = Contract(
        artifacts=(Artifact(path="missing"),),
        commands=("no-such-program-anywhere", "true"),
        require_completion_report=True,
    )

    result = verify(
        contract,
        tmp_path,
        attempt=an_attempt(reported=Reported(report=DONE), last=LastStep(is_report=True)),
    )

    assert [one.passed for one in result.checks] == [False, False, True, True]
    assert result.verdict is Verdict.FAILED


@pytest.mark.requirement("verification:idempotent")
def test_checking_twice_gives_the_same_verification(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[{}]")
    contract = Contract(
        artifacts=(Artifact(path="a.json", schema={"minItems": 2}), Artifact(path="a.json")),
        commands=("cat a.json",),
    )

    assert verify(contract, tmp_path) == verify(contract, tmp_path)


OFF = "unsandboxed: verification.sandbox is off"
OLD = Artifact(path="there", fresh=False)


@pytest.mark.requirement("verification:vacuous")
@pytest.mark.parametrize(
    ("contract", "vacuous"),
    [
        (Contract(artifacts=(OLD,)), True),
        (Contract(artifacts=(Artifact(path="there"),), fresh=False), True),
        (Contract(artifacts=(Artifact(path="there"),)), False),
        (Contract(artifacts=(OLD, Artifact(path="there"))), False),
        (Contract(artifacts=(OLD, Artifact(path="missing", fresh=False))), False),
        (Contract(artifacts=(replace(OLD, min_bytes=2),)), False),
        (Contract(artifacts=(OLD,), require_completion_report=True), False),
        (Contract(artifacts=(OLD,), commands=("touch ran",)), False),
        (Contract(require_completion_report=True), False),
    ],
)
def test_a_contract_that_passes_on_the_untouched_workspace_is_vacuous(
    tmp_path: Path, contract: Contract, *, vacuous: bool
) -> None:
    (tmp_path / "there").write_text("x")
    verifier = Verifier(DaemonThreads("baseline"), FixedClock(), commands_allowed=True)

    assert asyncio.run(verifier.before(contract, WorkRoot(str(tmp_path)))).is_vacuous is vacuous
    assert not (tmp_path / "ran").exists()


# ── threads ─────────────────────────────────────────────────────────────────────────────────────
