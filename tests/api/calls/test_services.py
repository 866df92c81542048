"""What the daemon's calls know of lanes and disks."""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.api.home_daemon import build
from tests.builders import NOW_MS, Life

from subagents.api.calls.services import DAY_MS, Services
from subagents.domain.rules.provider_limits import PROBE_MS, Gate
from subagents.domain.run.values import RunId

RUN = Life.begin().run


@dataclass
class Busy:
    """An engine and its queries: three slots are held, and there is a gate or none."""

    gate: Gate | None = None

    def gate_of(self, _run: object) -> Gate | None:
        return self.gate

    def slots_held(self, _lane: object) -> int:
        return 3


def services(home: Path, gate: Gate | None, *, now_ms: int = NOW_MS) -> Services:
    busy: Any = Busy(gate)
    return replace(build(home), engine=busy, queries=busy, now_ms=lambda: now_ms)


@pytest.mark.requirement("limits:shown")
def test_a_lane_is_as_full_as_its_slots_and_limited_by_nothing_else(tmp_path: Path) -> None:
    assert services(tmp_path, None).lane_of(RUN) == (3, RUN.resolved.lane_slots, None)


@pytest.mark.requirement("limits:shown")
def test_a_closed_gate_names_its_provider_and_the_time_of_day(tmp_path: Path) -> None:
    soon = Gate(provider="anthropic", until_ms=NOW_MS + 60_000, status=429)
    late = Gate(provider="x", until_ms=NOW_MS + DAY_MS)

    told = services(tmp_path, soon).lane_of(RUN).limit or ""
    assert re.fullmatch(r"waiting for anthropic: 429, until \d\d:\d\d:\d\d", told)
    told = services(tmp_path, late).lane_of(RUN).limit or ""
    assert re.fullmatch(r"waiting for x: refused, until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d", told)


@pytest.mark.requirement("limits:shown")
def test_a_gate_that_opens_says_which_run_goes_first(tmp_path: Path) -> None:
    gate = Gate(provider="anthropic", until_ms=NOW_MS, probe=RunId("r-9"), probe_at_ms=NOW_MS)

    told = services(tmp_path, gate, now_ms=NOW_MS + PROBE_MS - 1).lane_of(RUN).limit

    assert told == "waiting for anthropic: refused; one run goes first (r-9)"


@pytest.mark.requirement("operations:disk")
def test_the_size_of_the_database_counts_its_write_ahead_log(tmp_path: Path) -> None:
    found = build(tmp_path)
    assert found.database_bytes() == 0

    found.paths.database.write_bytes(b"x" * 100)
    assert found.database_bytes() == 100
    found.paths.database.with_name(f"{found.paths.database.name}-wal").write_bytes(b"x" * 23)

    assert found.database_bytes() == 123
    assert found.free_bytes() > 0
