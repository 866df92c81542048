"""The suite against the `subagents` that is installed beside this Python."""

import sys
from pathlib import Path

import pytest
from tests.conformance_resume.run import table, tried
from tests.conformance_resume.trials import TRIALS

PROGRAM = Path(sys.executable).absolute().parent / "subagents"
NODES_KILLS = 5
"""A take-over of a node takes its leases: `make conformance-resume NODES=3` has the time."""


@pytest.mark.requirement("resume:consume-once")
def test_each_end_is_consumed_once_over_two_kills() -> None:
    rows = tried(["consume"], PROGRAM, nodes=1, seed=1, kills=2)

    assert [each.is_as_documented for each in rows] == [True], table(rows)


@pytest.mark.requirement(
    "resume:prefix",
    "resume:effects",
    "resume:fork",
    "resume:checkpoint",
    "resume:consume-once",
    "resume:recovery",
)
@pytest.mark.timeout(3000)
@pytest.mark.parametrize(("nodes", "kills"), [(1, 20), (3, NODES_KILLS)], ids=["one", "three"])
def test_every_verdict_is_the_one_of_the_page(nodes: int, kills: int) -> None:
    rows = tried([*TRIALS], PROGRAM, nodes=nodes, seed=1, kills=kills)

    assert all(each.is_as_documented for each in rows), table(rows)
