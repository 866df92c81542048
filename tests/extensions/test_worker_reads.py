"""What a worker's token may read: its own tree, and nothing of other sessions."""

import asyncio

import pytest
from tests.api.answer_schemas import description
from tests.api.home_daemon import Home, UnixConnection

OPERATOR = {"agent": {"X-Subagents-Caller": "agent", "X-Subagents-Session": "agent:main:x"}}
FOREIGN = "of-somebody-else"

# Every operation that reads, and who may: `open` = everybody, the same for all; `own` = of a worker
# and an agent what is theirs alone; `operator` = neither. {sel} is the run of another session.
READS = {
    "/healthz": "open",
    "/readyz": "open",
    "/version": "open",
    "/openapi.json": "open",
    "/metrics": "operator",
    "/v1/config": "operator",
    "/v1/diagnostics": "operator",
    "/v1/cluster": "operator",
    "/v1/login": "operator",
    "/v1/logins": "operator",
    "/v1/schedules": "operator",
    "/v1/worktrees": "operator",
    "/v1/schedules/{sel}": "operator",
    "/v1/agents/stats": "operator",
    "/v1/stats/series": "operator",
    "/v1/agents": "own",
    "/v1/agents/suggest": "own",
    "/v1/tools": "own",
    "/v1/runs": "own",
    "/v1/tree": "own",
    "/v1/graph?tree={sel}": "own",
    "/v1/runs/{sel}": "own",
    "/v1/runs/{sel}/status": "own",
    "/v1/runs/{sel}/result": "own",
    "/v1/runs/{sel}/result/text": "own",
    "/v1/runs/{sel}/tree": "own",
    "/v1/runs/{sel}/timeline": "own",
    "/v1/runs/{sel}/why": "own",
    "/v1/runs/{sel}/log": "own",
    "/v1/runs/{sel}/progress": "own",
    "/v1/runs/{sel}/artifacts": "own",
    "/v1/runs/{sel}/artifacts/content?path=x": "own",
    "/v1/runs/{sel}/diff": "own",
    "/v1/runs/{sel}/ag-ui": "own",
    "/v1/plans": "own",
    "/v1/plans/{sel}": "own",
    "/v1/events?run={sel}": "own",
    "/v1/alerts": "own",
    "/v1/inbox?all=1": "own",
    "/v1/attention": "own",
    "/v1/requests/{id}": "own",
}


def asked(home: Home, path: str, headers: dict[str, str]) -> tuple[int, str]:
    """The status and the text of an answer, whatever it is made of."""
    connection = UnixConnection(home.services.paths.socket)
    try:
        connection.request("GET", path, headers={"Accept": "application/json", **headers})
        answered = connection.getresponse()
        return answered.status, answered.read().decode()
    finally:
        connection.close()


@pytest.mark.requirement("identity:reads")
def test_each_operation_that_reads_has_its_row() -> None:
    documented = {path for path, found in description()["paths"].items() if "get" in found}
    rows = {path.partition("?")[0] for path in READS}
    assert {path.replace("{run}", "{sel}") for path in documented} <= rows | {"/v1/login"}


@pytest.mark.requirement("identity:reads", "e2e:worker-tokens")
async def test_a_worker_and_an_agent_read_nothing_of_other_sessions_nor_of_the_daemon(
    daemon: Home,
) -> None:
    other = {"X-Subagents-Session": "agent:main:other"}
    foreign = (await daemon.spawn("hang", headers=other, label=FOREIGN))["runId"]
    own = (await daemon.spawn("hang"))["runId"]
    for run_id in (foreign, own):
        await daemon.until_phase(run_id, "running")
    callers = {**OPERATOR, "worker": daemon.worker(own)}

    for row, who in READS.items():
        path = row.format(sel=foreign, id=f"{foreign}:q1") if "{" in row else row
        for name, headers in callers.items():
            status, text = await asyncio.to_thread(asked, daemon, path, headers)
            what = (name, path, status, text[:200])
            if who == "open":
                assert status == 200, what
            elif who == "operator":
                assert status == 403, what
            else:
                assert status in ((403, 404) if "{" in row else (200,)), what
            if status == 200:
                assert foreign not in text, what
                assert FOREIGN not in text, what
                assert "agent:main:other" not in text, what


@pytest.mark.requirement("identity:reads")
async def test_the_operator_reads_all_of_it(daemon: Home) -> None:
    run_id = (await daemon.spawn("hang"))["runId"]
    await daemon.until_phase(run_id, "running")
    for path in (*(row for row, who in READS.items() if who == "operator"), "/v1/runs"):
        # It is in no cluster, came by no login, and has no such schedule and no worktrees.
        if path in {"/v1/cluster", "/v1/login", "/v1/schedules/{sel}", "/v1/worktrees"}:
            continue
        status, text = await asyncio.to_thread(asked, daemon, path, {})
        assert status == 200, (path, text[:200])
