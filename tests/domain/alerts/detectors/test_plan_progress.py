"""Items of a worker's plan."""

import pytest
from tests.domain.alerts.detectors.detector_inputs import plan, see, texts


@pytest.mark.requirement("detectors:milestones")
def test_items_of_a_plan_are_told_when_they_begin_and_when_they_are_done() -> None:
    first = plan(("Read the spec", "in_progress"), ("Build it", "pending"))
    second = plan(("Read the spec", "completed"), ("Build it", "in_progress"))
    _, alerts = see(first, second)

    assert [each.text for each in alerts] == [
        "📋 [1/2] Read the spec",
        "📋 [1/2] Read the spec ✅",
        "📋 [2/2] Build it",
    ]
    assert alerts[1].fields == {"task": "Read the spec", "status": "completed", "progress": "1/2"}
    assert [each.key for each in alerts] == [
        "task_milestone:1.1",
        "task_milestone:1.2",
        "task_milestone:1.2.2",
    ]


@pytest.mark.requirement("detectors:milestones")
def test_a_plan_that_is_sorted_worded_anew_or_written_again_is_no_news() -> None:
    first = plan(("Read", "completed"), ("Build", "in_progress"), ("Ship", "pending"))
    watch, _ = see(first)
    same = (
        first,
        plan(("Ship", "pending"), ("read", "completed"), ("Build ", "in_progress")),
        plan(("Ship it", "pending"), ("Read", "completed"), ("Build", "in_progress")),
        plan(("Ship it", "pending"), ("Read", "completed"), ("Build it all", "in_progress")),
        plan(
            ("Look", "pending"),
            ("Ship it", "pending"),
            ("Read", "completed"),
            ("Build it all", "in_progress"),
        ),
    )

    assert see(*same, watch=watch)[1] == []


@pytest.mark.requirement("detectors:milestones")
def test_a_plan_that_is_done_all_at_once_is_told_in_a_few_lines() -> None:
    done = plan(*((f"Step {number}", "completed") for number in range(1, 31)))
    told = texts(done)

    assert told[0] == "📋 [27/30] Step 27 ✅ (and 26 more)"
    assert told[1:] == [f"📋 [{n}/30] Step {n} ✅" for n in (28, 29, 30)]
