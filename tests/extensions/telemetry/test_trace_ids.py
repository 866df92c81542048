"""Ids of traces and spans are hashes of the run's: known before it starts, the same each time."""

import re

import pytest
from tests.builders import spawned

from subagents.domain.lifecycle.reduce import reduce
from subagents.domain.run.run import Run
from subagents.domain.run.values import RunId
from subagents.extensions.telemetry.trace_ids import (
    DEPTH_MAX,
    lineage,
    span_id,
    trace_id,
    traceparent,
)

ROOT, CHILD = RunId("r-root"), RunId("r-child")


def a_run(run_id: RunId, above: RunId | None) -> Run:
    return reduce(None, spawned(run_id=run_id, requester_run=above)).run


@pytest.mark.requirement("trace:ids")
def test_ids_have_the_form_that_w3c_asks_for_and_never_change() -> None:
    form = r"00-[0-9a-f]{32}-[0-9a-f]{16}-01"

    assert re.fullmatch(form, traceparent(ROOT, CHILD, 1))
    assert traceparent(ROOT, CHILD, 1) == f"00-{trace_id(ROOT)}-{span_id(CHILD, 1)}-01"
    assert len({span_id(CHILD, 1), span_id(CHILD, 2), span_id(CHILD, 1, "tool", "0")}) == 3


@pytest.mark.requirement("trace:lineage")
def test_the_root_is_the_top_of_the_tree() -> None:
    middle = RunId("r-middle")
    runs = {ROOT: a_run(ROOT, None), middle: a_run(middle, ROOT)}

    found = lineage(a_run(CHILD, middle), runs.get)

    assert (found.root, found.parent) == (ROOT, runs[middle])
    assert lineage(runs[ROOT], runs.get).root == ROOT


@pytest.mark.requirement("trace:lineage")
def test_a_pruned_ancestor_ends_the_way_up_and_no_circle_goes_on_for_ever() -> None:
    alone = a_run(CHILD, RunId("r-pruned"))
    assert lineage(alone, lambda _: None).root == "r-pruned"

    circle = {ROOT: a_run(ROOT, CHILD), CHILD: a_run(CHILD, ROOT)}
    asked: list[RunId] = []

    def look(run_id: RunId) -> Run:
        asked.append(run_id)
        return circle[run_id]

    lineage(circle[CHILD], look)
    assert len(asked) <= DEPTH_MAX + 1
