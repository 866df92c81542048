"""Three levels, fifty children that race for one budget, two kills of the daemon: the cap holds.

Every worker is a real process that spends by itself and keeps its own books in a file, so that
what was really spent is known without the daemon.
"""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pytest
from tests.e2e.live_home import Document, LiveHome, audit, live_home, until
from tests.simulation.bills import bill_of

from subagents.client.client import Client
from subagents.domain.run import spending
from subagents.domain.run.run import MessageKind
from subagents.domain.run.values import RunId
from subagents.errors import Forbidden, SubagentsError

CHILDREN: Final = 50
CALL: Final = 1_000
CALL_S: Final = 2.0
"""Longer than usage is held back (1 s) and a stop takes."""
CAP: Final = 200_000
RESERVED: Final = 10_000
"""Of every other child."""
KILLS_AT: Final = (20_000, 60_000)

LEAD: Final = """
until [ -e finish ]; do sleep 0.05; done
echo 'the report of the lead'
"""
MIDDLE: Final = "until [ -e finish ]; do sleep 0.05; done; echo middle"
SPENDER: Final = f"""
i=0
while :; do
  sleep {CALL_S}
  i=$((i+{CALL}))
  echo "$SUBAGENTS_RUN_ID {CALL}" >> spent
  echo "{{\\"subagents\\":\\"usage\\",\\"tokensIn\\":$i,\\"costUsd\\":0.01}}"
done
"""


def spent(home: LiveHome) -> int:
    """What the workers really spent, by their own books."""
    try:
        lines = (home.work / "spent").read_text().splitlines()
    except FileNotFoundError:
        return 0
    return sum(int(line.split()[1]) for line in lines)


def spawn_as(home: LiveHome, worker: dict[str, str], task: str, **spec: Any) -> Any:
    """One spawn in the name of a live worker; its receipt, or why it was refused."""
    with Client(home.paths.socket, headers=worker) as client:
        try:
            return client.post("/v1/runs", home.spawn_body(task, **spec), timeout_s=60)
        except SubagentsError as error:
            return error


def race(home: LiveHome, middles: list[str]) -> list[Any]:
    """Fifty spawns at once, every other one with a budget of its own."""
    tokens = [home.as_worker(run_id) for run_id in middles]

    def one(number: int) -> Any:
        own = {"budget": {"maxTokens": RESERVED}} if number % 2 else {}
        task = f"cd {home.work} && exec sh spender"
        return spawn_as(home, tokens[number % len(tokens)], task, **own)

    with ThreadPoolExecutor(CHILDREN) as pool:
        return list(pool.map(one, range(CHILDREN)))


def ended(home: LiveHome, run_ids: list[str]) -> list[Document] | None:
    """Their rows, once all of them have an outcome."""
    rows = [home.row(run_id) for run_id in run_ids]
    return rows if all(row["outcome"] is not None for row in rows) else None


@pytest.mark.timeout(300)
@pytest.mark.requirement(
    "e2e:budget-of-three-levels",
    "budget:never-exceeded",
    "budget:report-reserve",
    "spawn:guardrail-budget",
    "field:stale-pool-read",
    "field:ate-the-report-turn",
)
def test_fifty_racing_children_and_two_kills_never_exceed_the_cap_and_the_lead_reports(
    tmp_path: Path,
) -> None:
    with live_home(tmp_path) as home:
        for name, text in (("lead", LEAD), ("spender", SPENDER)):
            (home.work / name).write_text(text)
        lead = home.spawn("exec sh lead", budget={"maxTokens": CAP}, label="lead")
        home.until_phase(lead, "running")
        as_lead = home.as_worker(lead)
        middles = [spawn_as(home, as_lead, MIDDLE, label=f"m{n}")["runId"] for n in range(2)]
        for run_id in middles:
            home.until_phase(run_id, "running")

        answers = race(home, middles)
        errors = [each for each in answers if isinstance(each, SubagentsError)]
        children = [each["runId"] for each in answers if not isinstance(each, SubagentsError)]
        assert errors, "25 x 10k tokens cannot fit into 180k"
        assert {each.details["guardrail"] for each in errors} == {"budget"}
        assert all('the budget of run "lead"' in each.message for each in errors)
        budgeted = [r for r in home.stored().values() if r.spec.budget is not None and r.id != lead]
        assert 0 < len(budgeted) * RESERVED <= CAP * 9 // 10

        for edge in KILLS_AT:
            until(lambda: spent(home) >= edge, what=f"{edge} tokens", within_s=120)  # noqa: B023
            home.restart_after_kill()

        rows = until(
            lambda: ended(home, [*middles, *children]),
            what="the end of everything below the lead",
            within_s=120,
        )
        known = home.row(lead)["subtreeUsage"]["tokensIn"]
        assert home.row(lead)["phase"] == "running", "what is kept for its report is its own"
        assert {row["outcome"]["reason"] for row in rows} == {"budget"}
        assert {row["outcome"]["status"] for row in rows} == {"partial"}
        assert isinstance(spawn_as(home, as_lead, "true"), Forbidden)
        assert CAP * 9 // 10 <= known <= spent(home)
        assert spent(home) <= CAP + len(children) * CALL
        (home.work / "finish").touch()
        item = home.finish(lead)[0]

        assert item["outcome"]["status"] == "ok"
        assert item["result"].startswith("the report of the lead")
        found = {RunId(run_id): run for run_id, run in audit(home).runs.items()}
        assert (
            bill_of(found, found[RunId(lead)]).tokens
            == spending.spent(found[RunId(lead)]).tokens_in
            == known
        )
        assert spending.spent(found[RunId(lead)]).runs == 1 + len(middles) + len(children)
        assert all(len(run.attempts) == 1 for run in found.values())
        sql = "SELECT kind, text FROM inbox WHERE run_id = ? ORDER BY number"
        kinds = Counter(kind for kind, _ in home.read(sql, (lead,)))
        assert kinds[MessageKind.ANNOUNCEMENT] == 1
        assert 1 <= kinds[MessageKind.ALERT] <= 3


@pytest.mark.requirement("e2e:budget-stops-a-worker", "field:budget-stop-looks-like-success")
def test_a_worker_that_ignores_the_stop_is_killed_and_what_it_wrote_is_a_partial_result(
    tmp_path: Path,
) -> None:
    """stacklok/mecatl #422: a child stopped by its budget returned a text that looked like done."""
    with live_home(tmp_path, grace_s=0.5) as home:
        run_id = home.spawn(
            "trap '' TERM; echo 'All done, task completed successfully.';"
            """ echo '{"subagents":"usage","tokensIn":400,"tokensOut":700,"costUsd":0.2}';"""
            " while :; do sleep 0.1; done",
            budget={"maxTokens": 1_000, "maxCostUsd": 1},
            retryCount=5,
        )
        item = home.finish(run_id)[0]

        assert (item["outcome"]["status"], item["outcome"]["reason"]) == ("partial", "budget")
        assert "its budget is used up: 1.1k of 1k tokens" in item["outcome"]["error"]
        assert item["result"].startswith("All done")
        shown = home.show(run_id)
        assert [each["exitSignal"] for each in shown["attempts"]] == [9]
        assert shown["budget"]["left"] == {
            "tokens": 0,
            "totalTokens": None,
            "costUsd": 0.8,
            "runs": None,
            "seconds": None,
        }
        assert (shown["budget"]["percent"], shown["budget"]["exhausted"]) == (110, True)


@pytest.mark.requirement("budget:honest-receipt")
def test_a_receipt_says_that_a_command_must_report_what_it_uses(tmp_path: Path) -> None:
    with live_home(tmp_path) as home:
        body = home.spawn_body("true", budget={"maxCostUsd": 1})
        timed = home.spawn_body("true", budget={"maxSeconds": 60, "maxRuns": 1})

        assert (
            "counts only what the command itself reports"
            in (home.post("/v1/runs", body)["warnings"][0])
        )
        assert home.post("/v1/runs", timed)["warnings"] == []
