"""Old files and new ones are told apart by what is in them, at a bounded cost."""

import subprocess
from pathlib import Path

import pytest
from tests.engine.verification.checking import verify

from subagents.domain.run.baseline import Baseline
from subagents.domain.run.outcome import Verdict
from subagents.domain.run.spec import Artifact, Contract
from subagents.engine.verification.contract_files import CHUNK_BYTES, SAMPLES, take_baseline
from subagents.engine.verification.work_root import WorkRoot

WAY_OUT = "; to accept it unchanged: --verify-existing (fresh: false)"
OLD = f"File a was there before the run and did not change{WAY_OUT}"
TOUCHED = OLD.replace(";", " (written again or touched, its content is the same);")


def in_shell(command: str, place: Path) -> None:
    subprocess.run(["/bin/sh", "-c", command], cwd=place, check=True, timeout=20)


def reason_after(place: Path, path: str, change: str, baseline: Baseline) -> str | None:
    """Why the file does not count after ``change``, a shell command run in ``place``."""
    in_shell(change, place)
    found = verify(Contract(artifacts=(Artifact(path=path),)), place, baseline=baseline)
    return found.checks[0].reason


@pytest.mark.requirement("contract:fresh")
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("true", OLD),
        ("touch -d '1 hour' a", TOUCHED),
        (
            "cp a b && mv b a && touch a",
            TOUCHED,
        ),
        ("printf 0xz > a; touch -r old a", None),
        ("printf more >> a", None),
        ("rm a && printf new > a", None),
        ("rm a", "File a does not exist"),
    ],
)
def test_only_another_content_is_a_change(tmp_path: Path, change: str, reason: str | None) -> None:
    for name in ("a", "old"):
        (tmp_path / name).write_text("0xy")
    assert (
        reason_after(tmp_path, "a", change, take_baseline(["a"], WorkRoot(str(tmp_path)))) == reason
    )


@pytest.mark.requirement("contract:fresh")
@pytest.mark.parametrize("before", ["true", "mkdir -p a/b", "mkfifo a", "ln -s nowhere a"])
def test_what_was_no_file_before_is_new(tmp_path: Path, before: str) -> None:
    in_shell(before, tmp_path)
    baseline = take_baseline(["a"], WorkRoot(str(tmp_path)))
    assert reason_after(tmp_path, "a", "rm -rf a; echo x > a", baseline) is None


@pytest.mark.requirement("contract:fresh")
def test_a_file_outside_of_the_workspace_is_known_as_well(tmp_path: Path) -> None:
    place, outside = tmp_path / "work", tmp_path / "outside"
    place.mkdir()
    outside.write_text("x")
    baseline = take_baseline([str(outside)], WorkRoot(str(place)))
    reason = reason_after(place, str(outside), "true", baseline)
    assert reason == OLD.replace("File a", f"File {outside}")
    assert reason_after(place, str(outside), "echo y > ../outside", baseline) is None


@pytest.mark.requirement("contract:fresh")
def test_of_what_is_too_large_samples_are_compared_with_its_end_among_them(tmp_path: Path) -> None:
    size = 2 * SAMPLES * CHUNK_BYTES
    with (tmp_path / "a").open("wb") as file:
        file.truncate(size)
    baseline = take_baseline(["a"], WorkRoot(str(tmp_path)), whole_bytes_max=size - 1)
    assert baseline.files[0].sampled
    said = OLD.replace(";", f" in its size or in {SAMPLES} samples of 1 MiB;")
    assert reason_after(tmp_path, "a", "true", baseline) == said
    end = f"printf x | dd of=a bs=1 seek={size - 1} conv=notrunc status=none"
    assert reason_after(tmp_path, "a", end, baseline) is None


@pytest.mark.requirement("contract:fresh")
def test_all_files_together_are_read_up_to_the_bound(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"x" * 100)
    found = take_baseline(["a", "b", "a"], WorkRoot(str(tmp_path)), whole_bytes_max=150)
    assert [(each.path, each.sampled) for each in found.files] == [("a", False), ("b", True)]


@pytest.mark.requirement("contract:fresh")
def test_what_could_not_be_read_before_is_not_held_against_the_work(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    baseline = take_baseline(["a"], WorkRoot(str(tmp_path)), abandoned=lambda: True)
    found = verify(Contract(artifacts=(Artifact(path="a"),)), tmp_path, baseline=baseline)
    assert found.verdict is Verdict.COULD_NOT_CHECK
    assert "whether it changed is not known" in str(found.checks[0].reason)


@pytest.mark.requirement("contract:fresh")
def test_old_files_count_where_the_contract_says_so(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    baseline = take_baseline(["a"], WorkRoot(str(tmp_path)))
    for contract in (
        Contract(artifacts=(Artifact(path="a", fresh=False),)),
        Contract(artifacts=(Artifact(path="a"),), fresh=False),
    ):
        assert verify(contract, tmp_path, baseline=baseline).verdict is Verdict.PASSED
    stricter = Contract(artifacts=(Artifact(path="a", fresh=True),), fresh=False)
    assert verify(stricter, tmp_path, baseline=baseline).verdict is Verdict.FAILED


@pytest.mark.requirement("contract:fresh")
def test_a_file_that_is_checked_in_a_process_of_its_own_is_compared_too(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("[]")
    contract = Contract(artifacts=(Artifact(path="a", schema={"type": "array"}),))
    found = verify(contract, tmp_path, baseline=take_baseline(["a"], WorkRoot(str(tmp_path))))
    assert found.checks[0].reason == OLD
