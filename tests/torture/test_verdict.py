"""What the storm calls lost, doubled or wrong: each of them is found in the diaries."""

import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.torture.diary import Diary
from tests.torture.verdict import Kill, judge


def announced(token: str, *, status: str = "just completed successfully", told: str = "") -> bytes:
    result = told or f"result of {token} ends"
    return f'[System Message] A subagent task "{token}" {status}.\n{result}'.encode()


class Place:
    """A storm in which one session spawned ``t-a``, whose worker ran once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.diary = Diary(root / "diaries" / "cli-run", "cli-run")
        self.diary.will_spawn("t-a", "ok")
        self.diary.has_spawned("t-a", "r-1")
        self.starts("t-a r-1#1 3")

    def starts(self, line: str) -> None:
        with (self.root / "journal").open("a") as journal:
            journal.write(f"{line} {time.monotonic():.2f}\n")

    def gives(self, data: bytes, *, acked: bool = True) -> None:
        take = self.diary.took(data)
        if acked:
            self.diary.was_acked(take)

    def wrong(self, *kills: Kill) -> Sequence[str]:
        return judge(self.root, kills).wrong


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def killed(kind: str, victim: str) -> Kill:
    return Kill(time.monotonic_ns(), kind, victim)


@pytest.mark.requirement("torture:verdict")
def test_a_result_that_came_once_is_right(place: Place) -> None:
    place.gives(announced("t-a"))
    found = judge(place.root, ())
    assert (found.wrong, found.spawns, found.starts, found.handed) == ([], 1, 1, 1)


@pytest.mark.requirement("torture:verdict")
def test_a_result_that_never_came_is_lost(place: Place) -> None:
    assert place.wrong() == ["cli-run: the result of t-a was never handed over"]


@pytest.mark.requirement("torture:verdict")
def test_an_acknowledged_spawn_whose_worker_never_began_is_lost(place: Place) -> None:
    place.diary.will_spawn("t-b", "ok")
    place.diary.has_spawned("t-b", "r-2")
    place.gives(announced("t-a"))
    (wrong,) = place.wrong()
    assert wrong.endswith("t-b was never handed over, and its worker never began")


@pytest.mark.requirement("torture:verdict")
def test_a_result_of_a_spawn_that_nobody_was_told_of_is_missed_too(place: Place) -> None:
    place.gives(announced("t-a"))
    place.diary.will_spawn("t-b", "ok")
    assert place.wrong() == []
    place.starts("t-b r-2#1 1")
    assert place.wrong() == ["cli-run: the result of t-b was never handed over"]


@pytest.mark.requirement("torture:verdict")
def test_an_attempt_that_began_twice_is_wrong(place: Place) -> None:
    place.gives(announced("t-a"))
    place.starts("t-a r-1#1 4")
    assert place.wrong() == ["r-1#1 began 2 times"]


@pytest.mark.requirement("torture:verdict")
def test_one_spawn_that_became_two_runs_is_wrong(place: Place) -> None:
    place.gives(announced("t-a"))
    place.starts("t-a r-2#1 4")
    assert place.wrong() == ["t-a was spawned once and became 2 runs: ['r-1', 'r-2']"]


@pytest.mark.requirement("torture:verdict")
def test_a_worker_beyond_the_slots_of_its_lane_is_wrong(place: Place) -> None:
    place.gives(announced("t-a"))
    place.starts("t-a r-1#2 over")
    assert place.wrong() == ["r-1#2 worked without a free slot"]
    assert place.wrong(killed("daemon", "daemon")) == ["r-1#2 worked without a free slot"]


@pytest.mark.requirement("torture:verdict")
def test_a_slot_that_a_just_killed_worker_still_holds_is_nobodys_fault(place: Place) -> None:
    place.gives(announced("t-a"))
    kill = killed("worker", "r-2#1")
    place.starts("t-a r-1#2 over")
    assert place.wrong(kill) == []
    long_before = Kill(kill.at_ns - 60 * 10**9, "worker", "r-2#1")
    assert place.wrong(long_before) == ["r-1#2 worked without a free slot"]


@pytest.mark.requirement("torture:verdict")
def test_a_result_that_comes_again_after_its_acknowledgement_is_doubled(place: Place) -> None:
    place.gives(announced("t-a"))
    place.gives(announced("t-a"))
    wrong = place.wrong(killed("daemon", "daemon"))
    assert wrong == ["cli-run: t-a came again after it was acknowledged"]


@pytest.mark.requirement("torture:verdict")
def test_a_result_comes_again_only_when_somebody_was_killed(place: Place) -> None:
    place.gives(announced("t-a"), acked=False)
    before = killed("caller", "cli-run")
    place.gives(announced("t-a"))
    assert judge(place.root, [before]).redelivered == 1
    assert place.wrong(before) == []
    assert place.wrong(killed("caller", "python")) == [
        "cli-run: t-a came twice, and nobody was killed"
    ]


@pytest.mark.requirement("torture:verdict")
def test_a_result_that_is_not_what_the_worker_printed_is_wrong(place: Place) -> None:
    place.gives(announced("t-a", told="something else"))
    (wrong,) = place.wrong()
    assert "not what it printed" in wrong


@pytest.mark.requirement("torture:verdict")
def test_a_run_fails_only_when_its_worker_was_killed_or_meant_to(place: Place) -> None:
    place.gives(announced("t-a", status="failed: exit code 3"))
    (wrong,) = place.wrong()
    assert "ended badly" in wrong
    assert place.wrong(killed("worker", "r-1#1")) == []


@pytest.mark.requirement("torture:verdict")
def test_a_result_of_another_session_is_wrong(place: Place) -> None:
    place.gives(announced("t-a") + announced("t-b"))
    assert place.wrong() == ["cli-run: was given t-b, which is of another session"]
