"""Checks run on real files and real processes; each kind once good and once bad."""

import asyncio
import contextlib
import hashlib
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

from subagents.domain.run.outcome import (
    Check,
    CheckType,
    Verdict,
    Verification,
)
from subagents.domain.run.run import Attempt, LastStep, Report, Reported, ReportStatus
from subagents.domain.run.spec import Artifact, Contract
from subagents.engine.kernel.threads import DaemonThreads
from subagents.engine.verification import artifacts
from subagents.engine.verification.artifacts import (
    JSON_BYTES_MAX,
    check_artifact,
    needs_own_process,
)
from subagents.engine.verification.verifier import SETTLE_S, Verifier, check_schemas
from subagents.errors import ContractError
from subagents.ports import OffLoop

T = TypeVar("T")

NOW_MS = 1_700_000_000_000


class RealClock:
    def now_ms(self) -> int:
        return NOW_MS

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


DONE = Report(summary="done")


def verify(
    contract: Contract,
    workspace: Path,
    *,
    attempt: Attempt | None = None,
    commands_allowed: bool = True,
    off_loop: OffLoop | None = None,
    marker_env: dict[str, str] | None = None,
) -> Verification:
    threads = DaemonThreads("test-checks")
    verifier = Verifier(off_loop or threads, RealClock(), commands_allowed=commands_allowed)

    async def run() -> Verification:
        return await asyncio.wait_for(
            verifier.verify(
                contract,
                workspace=str(workspace),
                attempt=attempt or an_attempt(),
                marker_env=marker_env or {},
            ),
            timeout=20,
        )

    try:
        return asyncio.run(run())
    finally:
        threads.close()


def check(artifact: Artifact, workspace: Path) -> Check:
    """One artifact, by the way the verifier takes: in process or in a process of its own."""
    verification = verify(
        Contract(artifacts=(artifact,), verification_timeout_ms=15_000), workspace
    )
    assert len(verification.checks) == 1
    return verification.checks[0]


def failed(result: Check) -> str:
    """The reason of a check that failed because of the work, not of the checker."""
    assert not result.passed
    assert not result.could_not_check
    assert result.reason is not None
    return result.reason


def gone(pid: int) -> bool:
    """No such process, or only its remains."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


def marked(marker: str) -> list[str]:
    """The live processes that carry the marker in their environment."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"SUBAGENTS_RUN_ID={marker}".encode() in (entry / "environ").read_bytes():
                found.append(entry.name)
    return found


def within(seconds: float, condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


# ── existence and size ──────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("verification:artifact:exists")
def test_a_file_that_exists_passes_and_a_missing_one_fails(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a.txt").write_text("hello")

    good = check(Artifact(path="out/a.txt"), tmp_path)
    assert good == Check(
        type=CheckType.ARTIFACT, target="out/a.txt", passed=True, evidence="5 bytes"
    )
    assert failed(check(Artifact(path="out/b.txt"), tmp_path)) == "File out/b.txt does not exist"


@pytest.mark.requirement("verification:artifact:min-bytes")
def test_too_few_bytes_fail_and_an_empty_file_is_called_empty(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "ten").write_bytes(b"0123456789")

    assert failed(check(Artifact(path="empty", min_bytes=100), tmp_path)) == (
        "File empty was empty (0 bytes, minimum 100 bytes required)"
    )
    assert failed(check(Artifact(path="ten", min_bytes=11), tmp_path)) == (
        "File ten is too small (10 bytes, minimum 11 bytes required)"
    )
    assert check(Artifact(path="ten", min_bytes=10), tmp_path).passed


# ── JSON ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("verification:artifact:json")
@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "is not valid JSON: it is empty"),
        (b" \n", "is not valid JSON: it is empty"),
        (b"{", "is not valid JSON: Input data was truncated"),
        (b"[NaN]", "is not valid JSON: JSON is malformed: invalid character (byte 1)"),
        (b'["\xff"]', "is not valid JSON: 'utf-8' codec can't decode byte 0xff"),
        (b"[" * 100_000, "is nested too deeply to be checked as JSON"),
    ],
)
def test_what_does_not_parse_as_json_fails_with_the_place(
    tmp_path: Path, content: bytes, fault: str
) -> None:
    (tmp_path / "a.json").write_bytes(content)

    assert failed(check(Artifact(path="a.json", json=True), tmp_path)).startswith(
        f"File a.json {fault}"
    )


@pytest.mark.requirement("verification:artifact:json")
def test_json_passes_with_its_number_of_items_as_evidence(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[1, 2, 3]")

    good = check(Artifact(path="a.json", json=True), tmp_path)

    assert good.passed
    assert good.evidence == "9 bytes, 3 items"


@pytest.mark.requirement("verification:artifact:min-items")
def test_min_items_counts_the_top_level_array_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "two.json").write_text("[1, 2]")
    (tmp_path / "object.json").write_text('{"items": [1, 2, 3]}')

    assert check(Artifact(path="two.json", json=True, min_items=2), tmp_path).passed
    assert failed(check(Artifact(path="two.json", json=True, min_items=3), tmp_path)) == (
        "File two.json has 2 items, minimum 3 required"
    )
    assert failed(check(Artifact(path="object.json", json=True, min_items=1), tmp_path)) == (
        "File object.json has an object at the top level, not an array"
    )


@pytest.mark.requirement("verification:artifact:required-keys")
def test_required_keys_name_the_item_and_the_keys_it_lacks(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[{"a": 1, "b": null}, {"a": 1}, 7, {}, {}, {}]')
    (tmp_path / "object.json").write_text('{"a": 1}')
    (tmp_path / "text.json").write_text('"a b"')
    (tmp_path / "good.json").write_text('[{"a": 1, "b": null}, {"b": 1, "a": 2, "c": 3}]')

    assert failed(
        check(Artifact(path="a.json", json=True, required_keys=("a", "b")), tmp_path)
    ) == (
        "File a.json lacks 'b' in item 1; lacks everything: it is a number in item 2;"
        " lacks 'a', 'b' in item 3; lacks required keys in 2 more items"
    )
    assert failed(
        check(Artifact(path="object.json", json=True, required_keys=("a", "b")), tmp_path)
    ) == ("File object.json lacks 'b' in the top-level object")
    assert "a string at the top level" in failed(
        check(Artifact(path="text.json", json=True, required_keys=("a",)), tmp_path)
    )
    assert check(Artifact(path="good.json", json=True, required_keys=("a", "b")), tmp_path).passed
    assert check(Artifact(path="object.json", json=True, required_keys=("a",)), tmp_path).passed


@pytest.mark.requirement("verification:artifact:all-faults")
def test_every_fault_of_a_file_is_told_at_once(tmp_path: Path) -> None:
    """The one retry should not be spent on half of what is wrong."""
    (tmp_path / "a.json").write_text("[{}]")

    reason = failed(
        check(
            Artifact(path="a.json", json=True, min_bytes=9, min_items=2, required_keys=("k",)),
            tmp_path,
        )
    )

    assert reason == (
        "File a.json is too small (4 bytes, minimum 9 bytes required);"
        " has 1 items, minimum 2 required; lacks 'k' in item 0"
    )


@pytest.mark.requirement("verification:artifact:sha256")
def test_sha256_compares_the_whole_content(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 3_000_000)
    right = hashlib.sha256(b"x" * 3_000_000).hexdigest()

    good = check(Artifact(path="a", sha256=right.upper()), tmp_path)
    assert good.passed
    assert good.evidence == f"3000000 bytes, sha256 {right[:12]}…"
    assert failed(check(Artifact(path="a", sha256="0" * 64), tmp_path)) == (
        f"File a has SHA-256 {right}, expected {'0' * 64}"
    )


# ── where a path may lead ───────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("verification:path:inside")
@pytest.mark.parametrize("path", ["../secret", "a/../../secret", ".."])
def test_a_relative_path_out_through_dots_fails_and_says_so(tmp_path: Path, path: str) -> None:
    (tmp_path / "secret").write_text("exists")
    (tmp_path / "workspace" / "a").mkdir(parents=True)

    assert f"File {path} leaves the workspace through '..'" in failed(
        check(Artifact(path=path), tmp_path / "workspace")
    )


@pytest.mark.requirement("verification:path:inside")
@pytest.mark.parametrize("path", ["link", "folder/secret", "folder/../secret"])
def test_a_relative_path_out_through_a_symlink_fails_and_says_so(tmp_path: Path, path: str) -> None:
    outside, workspace = tmp_path / "outside", tmp_path / "workspace"
    (outside / "deep").mkdir(parents=True)
    workspace.mkdir()
    for file in (outside / "secret", outside / "deep" / "secret"):
        file.write_text("exists")
    (workspace / "link").symlink_to(outside / "secret")
    (workspace / "folder").symlink_to(outside / "deep")

    assert f"File {path} leaves the workspace through a symlink to {outside}" in failed(
        check(Artifact(path=path), workspace)
    )


@pytest.mark.requirement("verification:path:inside")
def test_symlinks_that_stay_inside_and_a_linked_workspace_are_fine(tmp_path: Path) -> None:
    (tmp_path / "real" / "sub").mkdir(parents=True)
    (tmp_path / "real" / "sub" / "a").write_text("x")
    (tmp_path / "real" / "link").symlink_to("sub/a")
    (tmp_path / "workspace").symlink_to("real")

    assert check(Artifact(path="link"), tmp_path / "workspace").passed
    assert check(Artifact(path="sub/../link"), tmp_path / "workspace").passed


@pytest.mark.requirement("verification:path:literal")
def test_absolute_paths_are_taken_as_given_and_nothing_is_expanded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "a").write_text("x")
    (tmp_path / "workspace").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    assert check(Artifact(path=str(tmp_path / "home" / "a")), tmp_path / "workspace").passed
    assert "does not exist" in failed(check(Artifact(path="~/a"), tmp_path / "workspace"))
    assert "does not exist" in failed(check(Artifact(path="$HOME/a"), tmp_path / "workspace"))
    (tmp_path / "workspace" / "~").mkdir()
    (tmp_path / "workspace" / "~" / "a").write_text("x")
    assert check(Artifact(path="~/a"), tmp_path / "workspace").passed


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

        begun = time.monotonic()
        reasons = [failed(one) for one in verify(contract, tmp_path).checks]

    assert time.monotonic() - begun < 5
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
@pytest.mark.skipif(os.geteuid() == 0, reason="root can read everything")
def test_an_unreadable_file_is_a_failed_check(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    (tmp_path / "a").chmod(0)

    assert "cannot be read: Permission denied" in failed(check(Artifact(path="a"), tmp_path))


@pytest.mark.requirement("verification:artifact:irregular")
def test_a_fifo_put_in_place_between_look_and_open_does_not_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_text("x")
    locate = artifacts._locate

    def swap_after_look(mode: int) -> None:
        monkeypatch.undo()
        (tmp_path / "a").unlink()
        os.mkfifo(tmp_path / "a")
        artifacts._refuse_irregular(mode)

    monkeypatch.setattr(artifacts, "_refuse_irregular", swap_after_look)

    assert "is a FIFO" in failed(check_artifact(Artifact(path="a"), tmp_path))
    assert locate("a", tmp_path) == str((tmp_path / "a").resolve())


@pytest.mark.requirement("verification:artifact:huge")
def test_a_huge_file_is_named_too_large_for_json_and_never_read_whole(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(JSON_BYTES_MAX * 10_000)

    begun = time.monotonic()
    assert failed(check(Artifact(path="huge", json=True), tmp_path)) == (
        f"File huge is larger than the {JSON_BYTES_MAX} bytes that are checked as JSON"
    )
    assert check(Artifact(path="huge", min_bytes=JSON_BYTES_MAX), tmp_path).passed
    assert time.monotonic() - begun < 5


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

    assert time.monotonic() - begun < 5
    assert result.verdict is Verdict.FAILED
    assert [one.reason for one in result.checks] == ["verification timed out after 100 ms"] * 2


@pytest.mark.requirement("verification:off-loop")
def test_large_json_is_decoded_in_a_process_of_its_own(tmp_path: Path) -> None:
    """Decoding holds the interpreter, so that a thread alone would freeze the daemon."""
    content = b"[" + b",".join([b'{"a":1}'] * 200_000) + b"]"
    (tmp_path / "big.json").write_bytes(content)
    artifact = Artifact(path="big.json", json=True, min_items=200_001, required_keys=("a",))

    assert needs_own_process(artifact, tmp_path)
    result = check(artifact, tmp_path)

    assert failed(result) == "File big.json has 200000 items, minimum 200001 required"
    assert result.evidence == f"{len(content)} bytes, 200000 items"


@pytest.mark.requirement("verification:could-not-check")
def test_the_checkers_own_trouble_is_not_held_against_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.json").write_text("[]")

    def disk_error(*_: object) -> object:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(artifacts, "_decode", disk_error)
    broken = verify(Contract(artifacts=(Artifact(path="a.json", json=True),)), tmp_path)
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


@pytest.mark.requirement("verification:could-not-check")
def test_running_out_of_memory_is_not_held_against_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.json").write_text("[]")

    def no_memory(*_: object) -> object:
        raise MemoryError

    monkeypatch.setattr(artifacts, "_decode", no_memory)

    result = check_artifact(Artifact(path="a.json", json=True), tmp_path)

    assert result.could_not_check
    assert result.reason == "File a.json could not be checked: out of memory"


# ── JSON Schema ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("verification:artifact:schema")
def test_a_schema_says_where_and_how_the_file_differs(tmp_path: Path) -> None:
    schema: dict[str, object] = {"items": {"properties": {"a/b": {"type": "integer"}}}}
    (tmp_path / "good.json").write_text('[{"a/b": 1}]')
    (tmp_path / "bad.json").write_text('[{"a/b": 1}' + ', {"a/b": "x"}' * 5 + "]")
    (tmp_path / "broken.json").write_text("[")

    assert check(Artifact(path="good.json", schema=schema), tmp_path).passed
    assert failed(check(Artifact(path="bad.json", schema=schema), tmp_path)) == "File bad.json " + (
        "; ".join(
            f'does not match its schema at /{item}/a~1b: "x" is not of type "integer"'
            for item in (1, 2, 3)
        )
    )
    assert "is not valid JSON" in failed(check(Artifact(path="broken.json", schema={}), tmp_path))


@pytest.mark.requirement("verification:schema:bounded")
def test_a_catastrophic_pattern_takes_linear_time(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('"' + "a" * 50_000 + '!"')

    begun = time.monotonic()
    reason = failed(check(Artifact(path="a.json", schema={"pattern": "^(a+)+$"}), tmp_path))

    assert time.monotonic() - begun < 5
    assert reason.startswith("File a.json does not match its schema at /: ")
    assert len(reason) < 400


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
    gaps: list[float] = []

    async def run() -> Verification:
        verifier = Verifier(DaemonThreads("schema"), RealClock(), commands_allowed=False)
        work = asyncio.ensure_future(
            verifier.verify(
                contract,
                workspace=str(tmp_path),
                attempt=an_attempt(),
                marker_env={"SUBAGENTS_RUN_ID": str(tmp_path)},
            )
        )
        while not work.done():
            before = time.monotonic()
            await asyncio.wait({work}, timeout=0.01)
            gaps.append(time.monotonic() - before)
        return work.result()

    check_schemas(contract)
    result = asyncio.run(asyncio.wait_for(run(), timeout=10))

    assert result.verdict is Verdict.FAILED
    assert result.checks[0].reason == "verification timed out after 700 ms"
    assert max(gaps) < 3
    assert within(2, lambda: not marked(str(tmp_path)))


@pytest.mark.requirement("verification:schema:offline")
@pytest.mark.parametrize("reference", ["", "file:///etc/passwd", "other.json", "#/$defs/none"])
def test_a_reference_to_another_document_is_refused_and_nothing_is_fetched(
    tmp_path: Path, reference: str
) -> None:
    (tmp_path / "a.json").write_text("1")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.05)
        url = reference or f"http://127.0.0.1:{server.getsockname()[1]}/schema.json"
        artifact = Artifact(path="a.json", schema={"properties": {"x": {"$ref": url}}})

        with pytest.raises(ContractError) as caught:
            check_schemas(Contract(artifacts=(Artifact(path="b"), artifact)))
        at_run_time = check_artifact(artifact, tmp_path)

        with pytest.raises(TimeoutError):
            server.accept()
    assert caught.value.message.startswith(
        "verification.artifacts[1].schema has a $ref that leads nowhere in it, and no other"
        " document is fetched: "
    )
    assert "no other document is fetched" in failed(at_run_time)


@pytest.mark.requirement("contract:schema:refused")
@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "strin"}, 'is not a valid JSON Schema at /type: "strin" is not valid under'),
        ({"minItems": -1}, "is not a valid JSON Schema at /minItems: -1 is less than"),
        ({"pattern": "(?=a)b"}, 'is not a valid JSON Schema at /pattern: "(?=a)b" is not a'),
        ({"pattern": "((a{1000}){1000}){9}"}, "is not a valid JSON Schema at /pattern: "),
        ({"$schema": "http://example.com/x"}, "Unknown meta-schema"),
    ],
)
def test_a_malformed_schema_is_refused_with_its_place(
    schema: dict[str, object], message: str
) -> None:
    with pytest.raises(ContractError) as caught:
        check_schemas(Contract(artifacts=(Artifact(path="a", schema=schema),)))

    assert caught.value.message.startswith("verification.artifacts[0].schema ")
    assert message in caught.value.message


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
        "The command exited with 3, expected 0",
        "The command was killed by signal 9",
        None,
    ]
    assert result.checks[0].evidence == "here\nto stderr"
    tail = str(result.checks[1].evidence)
    assert tail.endswith("99999\n100000")
    assert len(tail) <= 2048
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

    assert time.monotonic() - begun < 1 + SETTLE_S + 3
    assert result.verdict is Verdict.FAILED
    assert [one.reason for one in result.checks] == ["verification timed out after 1000 ms"] * 2
    assert result.checks[0].evidence == "working"
    assert not (tmp_path / "late").exists()
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert len(pids) == 2
    assert all(within(2, lambda pid=pid: gone(pid)) for pid in pids)  # type: ignore[misc]


@pytest.mark.requirement("verification:command:killed")
def test_what_a_command_leaves_behind_is_killed_and_does_not_hold_up_the_verdict(
    tmp_path: Path,
) -> None:
    begun = time.monotonic()
    result = verify(Contract(commands=("sleep 600 & echo $! > pid; echo done",)), tmp_path)

    assert result.verdict is Verdict.PASSED
    assert time.monotonic() - begun < 5
    assert within(2, lambda: gone(int((tmp_path / "pid").read_text())))


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
    assert {one.reason for one in result.failures} == {"verification timed out after 1500 ms"}


@pytest.mark.requirement("verification:timeout")
def test_a_check_stuck_in_the_kernel_holds_up_neither_the_verdict_nor_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a dead network disk: the call cannot be ended by anybody."""
    release = threading.Event()
    real_check = check_artifact

    def stuck(artifact: Artifact, workspace: Path, *, abandoned: Callable[[], bool]) -> Check:
        if artifact.path == "dead":
            release.wait(30)
        return real_check(artifact, workspace, abandoned=abandoned)

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

    assert took < 0.05 + SETTLE_S + 3
    assert first.checks[0].reason == "verification timed out after 50 ms"
    assert first.verdict is Verdict.FAILED
    assert second.verdict is Verdict.PASSED


@pytest.mark.requirement("verification:could-not-check")
def test_a_verification_that_never_got_a_thread_says_nothing_about_the_work(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    threads = DaemonThreads("full", threads_max=1)
    release = threading.Event()

    async def run() -> Verification:
        busy = asyncio.ensure_future(threads(lambda: release.wait(30)))
        verifier = Verifier(threads, RealClock(), commands_allowed=False)
        try:
            return await verifier.verify(
                Contract(artifacts=(Artifact(path="a"),), verification_timeout_ms=50),
                workspace=str(tmp_path),
                attempt=an_attempt(),
                marker_env={},
            )
        finally:
            release.set()
            await busy

    result = asyncio.run(asyncio.wait_for(run(), timeout=10))

    assert result.verdict is Verdict.COULD_NOT_CHECK
    assert result.checks[0].reason == "no thread was free within 50 ms"


@pytest.mark.requirement("verification:timeout")
def test_the_limit_holds_also_when_the_work_runs_in_line(tmp_path: Path) -> None:
    """The simulator runs it so: no timer of the loop can fire meanwhile."""

    async def in_line(work: Callable[[], T]) -> T:
        return work()

    def off_loop(work: Callable[[], T], /) -> Awaitable[T]:
        return in_line(work)

    begun = time.monotonic()
    result = verify(
        Contract(commands=("sleep 60",), verification_timeout_ms=100), tmp_path, off_loop=off_loop
    )

    assert time.monotonic() - begun < 5
    assert result.checks[0].reason == "verification timed out after 100 ms"


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


@pytest.mark.requirement("verification:vacuous")
@pytest.mark.parametrize(
    ("contract", "vacuous"),
    [
        (Contract(artifacts=(Artifact(path="there"),)), True),
        (Contract(artifacts=(Artifact(path="there"), Artifact(path="missing"))), False),
        (Contract(artifacts=(Artifact(path="there", min_bytes=2),)), False),
        (Contract(artifacts=(Artifact(path="there"),), require_completion_report=True), False),
        (Contract(artifacts=(Artifact(path="there"),), commands=("touch ran",)), False),
        (Contract(require_completion_report=True), False),
    ],
)
def test_a_contract_that_passes_on_the_untouched_workspace_is_vacuous(
    tmp_path: Path, contract: Contract, *, vacuous: bool
) -> None:
    (tmp_path / "there").write_text("x")
    verifier = Verifier(DaemonThreads("baseline"), RealClock(), commands_allowed=True)

    assert asyncio.run(verifier.baseline(contract, str(tmp_path))) is vacuous
    assert not (tmp_path / "ran").exists()


# ── threads ─────────────────────────────────────────────────────────────────────────────────────
