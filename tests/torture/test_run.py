"""The runner of the torture: its table, its time and its code."""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from scripts import fault_table
from tests.torture import run
from tests.torture.bed import ROOT, Bed, Findings, table, tried

HANGS_S = 120.0


@pytest.mark.requirement("torture:runner")
def test_whatever_stops_a_part_is_wrong_and_keeps_its_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def breaks(bed: Bed) -> None:
        (bed.root / "left").touch()
        bed.saw("a fault", 3, "nothing yet")
        raise AssertionError("no daemon came back")

    found = tried("a-part", breaks, seed=7, minutes=0)
    assert len([*tmp_path.glob("*/left")]) == 1
    assert found.wrong == ["AssertionError: no daemon came back"]
    assert "a fault" in table([found])
    assert "1 WRONG (seed 7" in table([found])


@pytest.mark.requirement("torture:runner")
def test_a_part_that_does_not_end_in_time_is_ended_and_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(run.PARTS, "endless_part", 1.0)
    began = time.monotonic()
    (found,) = run.run_parts(["endless_part"], minutes=60, seed=1, end=began + run.END_S + 3)
    assert found.wrong == ["it did not end in time"]
    assert time.monotonic() - began < HANGS_S


@pytest.mark.requirement("torture:runner")
def test_a_part_that_says_nothing_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(run.PARTS, "no_such_part", 1.0)
    (found,) = run.run_parts(["no_such_part"], minutes=1, seed=1, end=None)
    assert found.wrong == ["it ended with 1"]


@pytest.mark.requirement("torture:runner")
def test_a_name_that_is_no_part_is_refused() -> None:
    command = [sys.executable, "-m", "tests.torture.run", "--parts", "floods,flods"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no part flods" in done.stderr


@pytest.mark.requirement("torture:runner")
def test_what_a_part_saw_replaces_what_it_saw_before_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "RECORD", tmp_path / "seen.json")
    for part, seed in (("floods", 1), ("soak", 2), ("floods", 3)):
        run.record([Findings(part, seed, 1.0)])
    run.record([Findings("soak", 4, 1.0, skipped="not here")])
    kept = json.loads((tmp_path / "seen.json").read_text())
    assert {part: each["seed"] for part, each in kept.items()} == {"floods": 3, "soak": 2}


@pytest.mark.requirement("torture:runner")
def test_the_page_has_every_part_and_names_what_was_wrong() -> None:
    seen = json.loads((ROOT / fault_table.RECORD).read_text())
    assert set(seen) == set(run.PARTS)
    wrong = {"part": {"date": "d", "seconds": 1, "seed": 1, "faults": [], "wrong": ["a loss"]}}
    assert "**wrong**: a loss" in fault_table.table(wrong)
