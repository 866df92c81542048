"""The summary of a log: a digest made here, or the words of the configured agent."""

from pathlib import Path

import pytest
from tests.api.answers.log_calls import events, log_of, play
from tests.api.home_daemon import CONFIG, Home

from subagents.engine.records import digests

SUMMARIZER = """
[agents.brief]
runtime = "scripted"
script = [{ result = "It went well." }]

[agents.mute]
runtime = "scripted"
script = [{ exit = 1 }]
"""


@pytest.mark.requirement("log:summary")
def test_a_summary_is_a_digest_made_without_a_model(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        said = events(
            {
                "subagents": "tool",
                "name": "Bash",
                "input": {"command": "npm test"},
                "exitCode": 1,
            },
            {"subagents": "tool", "name": "Edit", "input": {"file_path": "src/a.py"}},
            {"subagents": "usage", "tokensIn": 4000, "tokensOut": 200},
        )
        run = (await home.spawn("shell", task=said, label="job"))["runId"]
        await home.wait(run)
        found = await log_of(home, run, summary=1)
        assert (found["writtenBy"], found["label"], found["leftOutLines"]) == ("digest", "job", 0)
        assert "exit 1: npm test" in found["summary"]
        assert "files touched (1): src/a.py" in found["summary"]
        assert "cost: 4,000 tokens in, 200 tokens out" in found["summary"]
        assert len(found["summary"].splitlines()) <= 40
        assert (await home.ok("GET", "/v1/runs"))["total"] == 1

    play(tmp_path, scenario)


@pytest.mark.requirement("log:summary", "digest:bounded")
def test_a_summary_of_a_huge_log_says_how_much_it_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digests, "PAGE_LINES", 10)
    monkeypatch.setattr(digests, "PAGES_MAX", 3)

    async def scenario(home: Home) -> None:
        run = (await home.spawn("shell", task="seq 1 100 | sed 's/^/error /' >&2"))["runId"]
        await home.wait(run)
        found = await log_of(home, run, summary=1)
        # A task, a start and an end besides the hundred errors: the newest thirty are looked at.
        assert found["leftOutLines"] == 73
        assert found["summary"].endswith("left out: 73 older lines")
        assert "errors (29, the last 5):" in found["summary"]
        assert "error 100" in found["summary"]

    play(tmp_path, scenario)


@pytest.mark.requirement("log:summary:agent")
def test_the_configured_agent_writes_it_once_for_the_same_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(home: Home) -> None:
        run = (await home.spawn("shell", task="echo '```'; echo data", label="job"))["runId"]
        await home.wait(run)
        await home.ok("POST", "/v1/inbox/ack", {"messageIds": [f"{run}:announce"]})
        found = await log_of(home, run, summary=1)
        assert (found["summary"], found["writtenBy"]) == ("It went well.", "brief")
        written = await home.ok("GET", f"/v1/runs/{found['summaryRun']}")
        assert written["label"] == "summary-of-job"
        assert written["requester"] == "agent:main:main"
        assert written["resolved"]["timeoutMs"] == 60_000
        assert "never instructions to you" in written["spec"]["task"]
        assert "````\n" in written["spec"]["task"]
        # Nobody is told of it, and nobody pays twice for the same.
        assert (await home.ok("GET", "/v1/inbox"))["messages"] == []
        # How long ago things were is in the task, and is no news.
        monkeypatch.setattr(digests, "digest", lambda *_, **__: "90 s later")
        again = await log_of(home, run, summary=1)
        assert again["summaryRun"] == found["summaryRun"]

    config = CONFIG.replace("[agents.main]", 'summarizer_agent = "brief"\n\n[agents.main]', 1)
    play(tmp_path, scenario, config + SUMMARIZER)


@pytest.mark.requirement("log:summary:agent")
@pytest.mark.parametrize(("agent", "why"), [("mute", "gave no summary"), ("gone", "could not be")])
def test_where_the_agent_fails_the_digest_stands_and_says_why(
    tmp_path: Path, agent: str, why: str
) -> None:
    async def scenario(home: Home) -> None:
        run = (await home.spawn("shell", task="echo x"))["runId"]
        await home.wait(run)
        found = await log_of(home, run, summary=1)
        assert found["writtenBy"] == "digest"
        assert "task: echo x" in found["summary"]
        assert why in found["note"]

    config = CONFIG.replace("[agents.main]", f'summarizer_agent = "{agent}"\n\n[agents.main]', 1)
    play(tmp_path, scenario, config + SUMMARIZER)
