"""``GET /metrics``: parsed as Prometheus would, against what really happened."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families
from tests.api.home_daemon import CONFIG, Home, UnixConnection, serving

from subagents.engine.records.counters import (
    AGENTS_MAX,
    OTHER,
    Counters,
    Histogram,
)
from subagents.extensions.telemetry.metrics import FAMILIES, PREFIX, Family, Line, exposed

LANE = """
[lanes.one]
slots = 1

[agents.slow]
runtime = "scripted"
lane = "one"
script = [{ hang = true }]

[agents.checked]
runtime = "command"
command = ["sh", "-c", "{task}"]
"""


class Scraped:
    """One answer, by metric and labels."""

    def __init__(self, text: str) -> None:
        self.families: dict[str, Metric] = {
            family.name: family for family in text_string_to_metric_families(text)
        }

    def value(self, sample: str, **labels: str) -> float | None:
        for family in self.families.values():
            for each in family.samples:
                if each.name == sample and each.labels == labels:
                    return float(each.value)
        return None

    def total(self, sample: str) -> float:
        return sum(
            each.value
            for family in self.families.values()
            for each in family.samples
            if each.name == sample
        )


def get(home: Home, headers: Mapping[str, str] | None = None) -> tuple[int, str, str]:
    connection = UnixConnection(home.services.paths.socket)
    try:
        connection.request("GET", "/metrics", headers=dict(headers or {}))
        answered = connection.getresponse()
        kind = answered.getheader("content-type") or ""
        return answered.status, kind, answered.read().decode()
    finally:
        connection.close()


async def scrape(home: Home) -> Scraped:
    status, kind, text = await asyncio.to_thread(get, home)
    assert status == 200, text
    assert kind.startswith("text/plain; version=0.0.4")
    return Scraped(text)


@pytest.mark.requirement("metrics:all")
async def test_every_metric_is_there_from_the_first_scrape_with_help_and_a_type(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as home:
        found = await scrape(home)
        assert {f"{PREFIX}{each.name}" for each in FAMILIES} == set(found.families)
        for family in FAMILIES:
            scraped = found.families[f"{PREFIX}{family.name}"]
            assert (scraped.type, scraped.documentation) == (family.kind, family.text)
        assert found.value("subagents_accepting") == 1
        assert found.total("subagents_database_bytes") > 0


@pytest.mark.requirement("metrics:counts")
async def test_what_happened_is_what_is_counted(tmp_path: Path) -> None:
    async with serving(tmp_path, CONFIG + LANE) as home:
        runs = [await home.spawn() for _ in range(3)] + [await home.spawn("bad")]
        waited = await home.wait(*(run["runId"] for run in runs))
        assert not waited["pending"]
        slow = [await home.spawn("slow") for _ in range(2)]
        await home.until_phase(slow[0]["runId"], "running")
        found = await scrape(home)

        assert found.value("subagents_runs_spawned_total", agent="quick") == 3
        ended = "subagents_runs_ended_total"
        assert found.value(ended, agent="quick", outcome="ok") == 3
        assert found.value(ended, agent="bad", outcome="error") == 1
        assert found.value("subagents_runs", phase="running", agent="slow") == 1
        assert found.value("subagents_runs", phase="queued", agent="slow") == 1
        assert found.value("subagents_attempts_live") == 1
        assert found.value("subagents_lane_slots_used", lane="one", depth="1") == 1
        assert found.value("subagents_lane_slots", lane="one", depth="1") == 1
        assert found.value("subagents_run_duration_seconds_count", agent="quick") == 3
        assert found.value("subagents_queue_wait_seconds_count") == 5
        assert found.value("subagents_inbox_unread") == 4
        assert (found.value("subagents_commit_seconds_count") or 0) >= 6
        events = home.services.engine.counters.commit_events
        assert found.value("subagents_commit_events_sum") == events.sum
        assert found.total("subagents_deliveries_total") >= 4

        await home.ok("POST", "/v1/inbox/ack", {"messageIds": waited["messages"]})
        again = await scrape(home)
        assert again.value("subagents_inbox_unread") == 0
        assert again.value(ended, agent="quick", outcome="ok") == 3


@pytest.mark.requirement("metrics:counts")
async def test_tokens_verdicts_waiting_time_and_errors_are_counted(tmp_path: Path) -> None:
    async with serving(tmp_path, CONFIG + LANE) as home:
        usage = '{"subagents":"usage","tokensIn":70,"tokensOut":3,"costUsd":0.5}'
        contract = {"artifacts": [{"path": "there.txt"}]}
        run = await home.spawn(
            "checked", task=f"echo '{usage}'; echo x > there.txt", verification=contract
        )
        await home.wait(run["runId"])
        first = await home.spawn("slow")
        second = await home.spawn("slow")
        await home.until_phase(first["runId"], "running")
        await home.ok("POST", f"/v1/runs/{first['runId']}/cancel", {})
        await home.until_phase(second["runId"], "running")
        await home.call("GET", "/v1/runs/nobody")
        found = await scrape(home)

        tokens = "subagents_tokens_total"
        assert found.value(tokens, agent="checked", direction="input") == 70
        assert found.value(tokens, agent="checked", direction="output") == 3
        assert found.value("subagents_cost_usd_total", agent="checked") == 0.5
        assert found.value("subagents_verifications_total", verdict="passed") == 1
        assert found.value("subagents_call_errors_total", code="not_found") == 1
        assert found.total("subagents_queue_wait_seconds_sum") > 0
        assert (await scrape(home)).total("subagents_refusals_total") == 0


@pytest.mark.requirement("metrics:operator")
async def test_metrics_are_for_the_operator_and_not_for_agents(tmp_path: Path) -> None:
    async with serving(tmp_path) as home:
        status, kind, text = await asyncio.to_thread(get, home, {"X-Subagents-Caller": "agent"})
        assert (status, kind) == (403, "application/problem+json")
        assert "for the operator" in text
        assert (await scrape(home)).value("subagents_refusals_total") == 1


@pytest.mark.requirement("metrics:bounded")
async def test_agents_beyond_the_bound_share_one_label(tmp_path: Path) -> None:
    async with serving(tmp_path) as home:
        meter = Counters(home.services.engine.ledger)
        names = [meter.agent(f"agent{number}") for number in range(AGENTS_MAX + 5)]
        assert names[-5:] == [OTHER] * 5
        assert len(set(names)) == AGENTS_MAX + 1
        assert meter.agent("agent3") == "agent3"


@pytest.mark.requirement("metrics:bounded")
def test_a_value_falls_into_the_first_bucket_that_holds_it() -> None:
    histogram = Histogram((1, 5))
    for value in (0.5, 1, 3, 5, 6):
        histogram.observe(value)

    assert histogram.counts == [2, 2, 1]
    assert histogram.sum == 15.5


@pytest.mark.requirement("metrics:all")
def test_whatever_a_label_says_is_read_back_as_it_is() -> None:
    odd = 'say "no" \\ or\nnot, ü'
    histogram = [Line(("x", "1.0"), 1, "_bucket"), Line(("x", "+Inf"), 3, "_bucket")]
    text = exposed(
        [
            (Family("odd", "gauge", "Odd.", ("agent", "kind")), [Line((odd, "k"), 1e22)]),
            (Family("long", "histogram", "Long.", ("agent",)), histogram),
        ]
    )
    found = Scraped(text)
    assert found.value("subagents_odd", agent=odd, kind="k") == 1e22
    assert found.value("subagents_long_bucket", agent="x", le="+Inf") == 3
