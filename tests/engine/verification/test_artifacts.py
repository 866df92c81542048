"""Artifacts of a contract: what passes, what fails and says where, and what is never waited for."""

import asyncio
import hashlib
import os
import socket
import threading
from pathlib import Path

import pytest
from tests.builders import an_attempt
from tests.engine.verification.checking import (
    FixedClock,
    check,
    failed,
)

from subagents.domain.run.outcome import (
    Check,
    CheckType,
    Verdict,
    Verification,
)
from subagents.domain.run.spec import Artifact, Contract
from subagents.engine.kernel.threads import DaemonThreads
from subagents.engine.verification import artifacts
from subagents.engine.verification.artifacts import (
    JSON_BYTES_MAX,
    check_artifact,
    needs_own_process,
)
from subagents.engine.verification.verifier import Verifier, check_schemas
from subagents.engine.verification.work_root import WorkRoot
from subagents.errors import ContractError


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


@pytest.mark.requirement("verification:artifact:json")
@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "is not valid JSON: it is empty"),
        (b" \n", "is not valid JSON: it is empty"),
        (b"{", "is not valid JSON: Input data was truncated"),
        (b"[NaN]", "is not valid JSON: JSON is malformed: invalid character (byte 1)"),
        (b'["\xff"]', "is not valid JSON: it is not UTF-8"),
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


@pytest.mark.requirement("verification:artifact:json")
@pytest.mark.parametrize(
    "number",
    ["1e400", "-1e400", "1E+9999", "9" * 30, "9" * 5_000, "-" + "9" * 9_000, "0.1e999", "1e-999"],
    ids=lambda text: text[:8],
)
def test_a_number_of_any_size_is_json_and_a_number(tmp_path: Path, number: str) -> None:
    (tmp_path / "a.json").write_text(f'[{number}, "x"]')
    schema: dict[str, object] = {"prefixItems": [{"type": "number"}]}

    assert check(Artifact(path="a.json", json=True, min_items=2), tmp_path).passed
    assert check(Artifact(path="a.json", schema={"type": "array"}), tmp_path).passed
    assert check(Artifact(path="a.json", schema=schema), tmp_path).passed


@pytest.mark.requirement("verification:artifact:json")
@pytest.mark.parametrize("content", ["[1e400, NaN]", "[1e400, -Infinity]", "[1e400", "[1e400]]"])
def test_beside_a_number_of_any_size_nothing_else_is_let_through(
    tmp_path: Path, content: str
) -> None:
    (tmp_path / "a.json").write_text(content)

    assert "is not valid JSON" in failed(check(Artifact(path="a.json", json=True), tmp_path))


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
        f"File a has another SHA-256 than {'0' * 64}"
    )


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

    assert f"File {path} leaves the workspace through a symlink" == failed(
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


@pytest.mark.requirement("verification:artifact:irregular")
@pytest.mark.skipif(os.geteuid() == 0, reason="root can read everything")
def test_an_unreadable_file_is_a_failed_check(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    (tmp_path / "a").chmod(0)

    assert "cannot be read: Permission denied" in failed(check(Artifact(path="a"), tmp_path))


@pytest.mark.requirement("verification:artifact:huge")
def test_a_huge_file_is_named_too_large_for_json_and_never_read_whole(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(JSON_BYTES_MAX * 10_000)

    assert failed(check(Artifact(path="huge", json=True), tmp_path)) == (
        f"File huge is larger than the {JSON_BYTES_MAX} bytes that are checked as JSON"
    )
    assert check(Artifact(path="huge", min_bytes=JSON_BYTES_MAX), tmp_path).passed


@pytest.mark.requirement("verification:off-loop")
def test_large_json_is_decoded_in_a_process_of_its_own(tmp_path: Path) -> None:
    """Decoding holds the interpreter, so that a thread alone would freeze the daemon."""
    content = b"[" + b",".join([b'{"a":1}'] * 200_000) + b"]"
    (tmp_path / "big.json").write_bytes(content)
    artifact = Artifact(path="big.json", json=True, min_items=200_001, required_keys=("a",))

    assert needs_own_process(artifact, WorkRoot(str(tmp_path)))
    result = check(artifact, tmp_path)

    assert failed(result) == "File big.json has 200000 items, minimum 200001 required"
    assert result.evidence == f"{len(content)} bytes, 200000 items"


@pytest.mark.requirement("verification:could-not-check")
def test_running_out_of_memory_is_not_held_against_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.json").write_text("[]")

    def no_memory(*_: object) -> object:
        raise MemoryError

    monkeypatch.setattr(artifacts, "_decode", no_memory)

    result = check_artifact(Artifact(path="a.json", json=True), WorkRoot(str(tmp_path)))

    assert result.could_not_check
    assert result.reason == "File a.json could not be checked: out of memory"


@pytest.mark.requirement("verification:artifact:schema")
def test_a_schema_says_where_and_how_the_file_differs(tmp_path: Path) -> None:
    schema: dict[str, object] = {"items": {"properties": {"a/b": {"type": "integer"}}}}
    (tmp_path / "good.json").write_text('[{"a/b": 1}]')
    (tmp_path / "bad.json").write_text('[{"a/b": 1}' + ', {"a/b": "x"}' * 5 + "]")
    (tmp_path / "broken.json").write_text("[")

    assert check(Artifact(path="good.json", schema=schema), tmp_path).passed
    assert failed(check(Artifact(path="bad.json", schema=schema), tmp_path)) == "File bad.json " + (
        "; ".join(
            f'does not match its schema at /{item}/a~1b: the value is not of type "integer"'
            for item in (1, 2, 3)
        )
    )
    assert "is not valid JSON" in failed(check(Artifact(path="broken.json", schema={}), tmp_path))


@pytest.mark.requirement("verification:schema:bounded")
def test_a_catastrophic_pattern_takes_linear_time(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('"' + "a" * 50_000 + '!"')

    reason = failed(check(Artifact(path="a.json", schema={"pattern": "^(a+)+$"}), tmp_path))

    assert reason.startswith("File a.json does not match its schema at /: ")
    assert len(reason) < 400


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
        at_run_time = check_artifact(artifact, WorkRoot(str(tmp_path)))

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


@pytest.mark.requirement("verification:could-not-check")
def test_a_verification_that_never_got_a_thread_says_nothing_about_the_work(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    threads = DaemonThreads("full", threads_max=1)
    release = threading.Event()

    async def run() -> Verification:
        busy = asyncio.ensure_future(threads(lambda: release.wait(30)))
        verifier = Verifier(threads, FixedClock(), commands_allowed=False)
        try:
            return await verifier.verify(
                Contract(artifacts=(Artifact(path="a"),), verification_timeout_ms=50),
                root=WorkRoot(str(tmp_path)),
                attempt=an_attempt(),
                marker_env={},
            )
        finally:
            release.set()
            await busy

    result = asyncio.run(asyncio.wait_for(run(), timeout=10))

    assert result.verdict is Verdict.COULD_NOT_CHECK
    assert result.checks[0].reason == "no thread was free within 50 ms"
