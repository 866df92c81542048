"""A tier as a whole: all parts run, all reds are told, and time counts on a quiet machine alone."""

import re
import tomllib
from pathlib import Path

import pytest
from scripts import gate
from scripts.gate import Gate, passed

ROOT = Path(__file__).parents[1]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `make` that writes down its targets, and fails for those that say so."""
    program, log = tmp_path / "make", tmp_path / "log"
    program.write_text(
        f'#!/bin/sh\necho "$2" >> {log}\necho the words of $2\ncase $2 in bad*) exit 2;; esac\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("MAKE", str(program))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(gate, "running_elsewhere", lambda: 0.0)
    monkeypatch.setattr(gate, "slowness", lambda: 1.0)
    return log


@pytest.mark.requirement("tests:gate")
def test_a_red_part_hides_none_that_follows_and_the_end_names_all_of_them(
    make: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert passed("check", Gate(("bad-1", "good", "bad-2"), budget_s=600)) == 1

    assert make.read_text().split() == ["bad-1", "good", "bad-2"]
    said = capfd.readouterr().out
    assert "RED  bad-1" in said
    assert "ok   good" in said
    assert "make -k bad-1 bad-2" in said


@pytest.mark.requirement("tests:gate")
def test_parts_that_run_beside_each_other_are_all_shown_whole_and_before_the_others(
    make: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    both = ("bad-1", "first", "second")

    assert passed("check", Gate(("last",), budget_s=600, group="x", paired=both)) == 1

    done = make.read_text().split()
    assert (done[0], sorted(done[1:4]), done[4]) == ("groups-x", sorted(both), "last")
    said = capfd.readouterr().out
    assert all(f"\n== make {part}\nthe words of {part}\n" in said for part in (*both, "last"))
    assert "make -k bad-1\n" in said


@pytest.mark.requirement("tests:gate")
def test_what_is_only_told_fails_nothing(make: Path, capfd: pytest.CaptureFixture[str]) -> None:
    told = Gate(("good", "bad"), budget_s=600, told=frozenset({"bad"}))

    assert passed("check", told) == 0
    assert "told bad" in capfd.readouterr().out


@pytest.mark.requirement("tests:gate")
@pytest.mark.parametrize(("others", "code"), [(0.0, 1), (1e9, 0)])
def test_a_tier_over_its_budget_is_red_unless_others_used_the_machine(
    make: Path, monkeypatch: pytest.MonkeyPatch, others: float, code: int
) -> None:
    monkeypatch.setattr(gate, "running_elsewhere", lambda: others)

    assert passed("check", Gate(("good",), budget_s=1e-6)) == code


@pytest.mark.requirement("tests:gate")
@pytest.mark.parametrize(
    ("slower", "stolen", "code"), [(1.0, 0.0, 1), (100.0, 0.0, 0), (1.0, 0.98, 0)]
)
def test_time_that_the_host_took_away_counts_in_no_budget(
    make: Path, monkeypatch: pytest.MonkeyPatch, slower: float, stolen: float, code: int
) -> None:
    ended = gate.Ended("good", 0, 100.0, slower=slower, stolen=stolen)
    monkeypatch.setattr(gate, "run", lambda _: [ended])
    monkeypatch.setattr("scripts.gate.time.monotonic", iter((0.0, 100.0)).__next__)

    assert passed("check", Gate(("good",), budget_s=10)) == code


@pytest.mark.requirement("tests:gate")
@pytest.mark.parametrize("group", ["check", "ci"])
def test_what_a_group_includes_is_not_fetched_once_more(group: str) -> None:
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["dependency-groups"]

    def included(name: str) -> set[str]:
        direct = {each["include-group"] for each in groups[name] if isinstance(each, dict)}
        return direct.union(*map(included, direct))

    listed = dict(re.findall(r"(?m)^within-(\w+) := (.*)$", (ROOT / "Makefile").read_text("utf-8")))
    named = listed[group].replace("$(within-check)", listed["check"]).split()
    assert (sorted(named), len({*named})) == (sorted(included(group)), len(named))
