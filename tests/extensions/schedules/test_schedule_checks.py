"""What ``doctor`` says of schedules."""

from pathlib import Path

import pytest

from subagents.config.paths import Paths
from subagents.extensions.schedules.schedule_checks import checks

HOME = Paths.resolve({"SUBAGENTS_HOME": str(Path("/nowhere"))})


@pytest.mark.requirement("schedule:found")
def test_one_whose_work_was_refused_last_is_warned_of_with_what_to_try() -> None:
    refused = {"decision": "refused", "text": "no agent nobody"}
    rows = [
        {"name": "broken", "times": [refused, {"decision": "started"}]},
        {
            "name": "mended",
            "nextAt": "2030-01-01T03:00:00.000Z",
            "times": [{"decision": "started"}, refused],
        },
        {"name": "held", "pausedAt": "2030-01-01T03:00:00.000Z"},
        {"name": "over", "when": "0 0 31 2 *", "zone": "Mars/Here"},
    ]

    found = [*checks(HOME, {"schedules": rows})]

    assert [(each.status, each.detail) for each in found] == [
        ("warn", "broken: no agent nobody"),
        ("ok", "mended: next 2030-01-01T03:00:00.000Z"),
        ("ok", "held: next paused"),
        ("warn", "over: never due again: 0 0 31 2 * in zone Mars/Here"),
    ]
    assert str(found[0].fix).endswith("subagents schedule run-now broken")


@pytest.mark.requirement("schedule:found")
def test_where_no_daemon_answers_nothing_is_said() -> None:
    assert [*checks(HOME, None)] == []
