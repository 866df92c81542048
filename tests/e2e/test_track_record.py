"""Track records of real workers: what they did counts, not what they say, over any crash."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from tests.e2e.live_home import DEFAULTS, Document, LiveHome, live_home, until

RUNS = 20
CLAIM = (
    '{"subagents":"report","summary":"all done, file written","status":"complete",'
    '"confidence":"high"}'
)
AGENTS = f"""
{DEFAULTS}
[agents.honest]
runtime = "command"
command = ["sh", "-c", "echo '{{\\"n\\": 1}}' > out.json; echo done"]
description = "Writes what was asked for"
capabilities = {{ tags = ["files"], cost_tier = "cheap", typical_latency = "1s" }}

[agents.moody]
runtime = "command"
command = ["sh", "-c", 'case $0 in *[02468]) echo "{{}}" > out.json;; *) exit 3;; esac', "{{task}}"]
description = "Writes what was asked for"
capabilities = {{ tags = ["files"], cost_tier = "cheap", typical_latency = "1s" }}

[agents.liar]
runtime = "command"
command = ["sh", "-c", '''echo '{CLAIM}'; echo "done: out.json is written"''']
description = "Writes what was asked for"
capabilities = {{ tags = ["files"], cost_tier = "cheap", typical_latency = "1s" }}
"""
CONTRACT = {"artifacts": [{"path": "out.json", "json": True}]}


def spawn(home: LiveHome, agent: str, number: int) -> str:
    place = home.work / f"{agent}{number}"
    place.mkdir()
    return home.spawn(
        f"part {number}", agent=agent, cwd=str(place), verification=CONTRACT, tags=["nightly"]
    )


def records(home: LiveHome) -> list[Document]:
    found = sorted(home.paths.state_dir.glob("agent-performance-*.jsonl"))
    return [msgspec.json.decode(line) for file in found for line in file.read_bytes().splitlines()]


def until_written(home: LiveHome, runs: Sequence[str]) -> list[Document]:
    """All records, once every one of these runs has its own; each exactly once."""
    wanted = sorted((run_id, 1) for run_id in runs)

    def look() -> list[Document] | None:
        found = records(home)
        return found if len(found) >= len(wanted) else None

    found = until(look, what=f"{len(wanted)} records")
    assert sorted((each["runId"], each["attempt"]) for each in found) == wanted
    return found


def command(home: LiveHome, *arguments: str) -> str:
    """What ``subagents`` prints."""
    done = subprocess.run(  # our own program
        [sys.executable, "-m", "subagents", *arguments],
        env=home._env,
        cwd=home.work,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.requirement("e2e:performance:liar")
def test_an_agent_that_says_done_without_the_file_is_suggested_last_for_its_counts(
    tmp_path: Path,
) -> None:
    with live_home(tmp_path, config=AGENTS) as home:
        runs = [
            spawn(home, agent, number)
            for number in range(RUNS)
            for agent in ("honest", "moody", "liar")
        ]
        home.finish(*runs, timeout_s=120)
        found = home.get("/v1/agents/suggest", hint="write the file", tags="files")["suggestions"]
        mine = [each for each in found if each["id"] in {"honest", "moody", "liar"}]

        assert [each["id"] for each in mine] == ["honest", "moody", "liar"]
        assert "20 of 20 runs verified (84–100 %)" in mine[0]["reasons"]
        assert "10 of 20 runs verified (30–70 %)" in mine[1]["reasons"]
        assert "0 of 20 runs verified (0–16 %)" in mine[2]["reasons"]
        shared = [reason for reason in mine[0]["reasons"] if "verified" not in reason]
        assert shared == [reason for reason in mine[2]["reasons"] if "verified" not in reason]
        anybody = home.get("/v1/agents/suggest")["suggestions"]
        assert anybody[-1]["id"] == "liar", "what is known to lie stands behind what is unknown"
        tools = home.post("/v1/tools/agents_list", {"hint": "write the file"})["structured"]
        told = {each["id"]: each for each in tools["agents"]}
        assert told["liar"]["record"]["text"] == "0 of 20 runs verified (0–16 %)"
        assert "0 of 20 runs verified (0–16 %)" in told["liar"]["reasons"]

        written = until_written(home, runs)
        lies = [each for each in written if each["agentId"] == "liar"]
        assert {each["outcome"] for each in lies} == {"failure"}
        assert {each["reason"] for each in lies} == {"verification_failed"}
        assert all(each["verificationPassed"] is False for each in lies)
        claim = {"status": "complete", "confidence": "high"}
        assert all(each["completionReport"] == claim for each in lies), "kept, and worth nothing"
        assert all(each["tokens"] == {"input": None, "output": None} for each in written)
        text = b"".join(
            file.read_bytes() for file in home.paths.state_dir.glob("agent-performance-*")
        )
        assert b"part 1" not in text
        assert b"all done" not in text

        table = command(home, "agents", "stats")
        (row,) = [line.split() for line in table.splitlines() if line.startswith("liar")]
        assert row[:3] == ["liar", "20", "0"]
        assert "0 of 20" in table
        advice = command(home, "agents", "suggest", "write the file", "--tag", "files")
        assert "liar" in advice.splitlines()[-1]
        assert "0 of 20 runs verified (0–16 %)" in advice.splitlines()[-1]
        shown = command(home, "agents", "show", "liar")
        assert "0 of 20 verified by their contract" in shown
        by_tag = home.get("/v1/agents/stats", by="tag", agent="moody")["stats"]
        assert [(each["name"], each["attemptCount"]) for each in by_tag] == [("nightly", RUNS)]


@pytest.mark.requirement("e2e:performance:kill", "performance:crash")
def test_over_kills_at_any_moment_every_attempt_has_its_record_once(tmp_path: Path) -> None:
    with live_home(tmp_path, config=AGENTS) as home:
        runs: list[str] = []
        for number in range(3):
            runs += [spawn(home, agent, number) for agent in ("honest", "moody", "liar")]
            settled = 3 * number + 1

            def some_ended(settled: int = settled) -> bool:
                ended = home.read("SELECT count(*) FROM run WHERE ended_at_ms IS NOT NULL")
                return int(ended[0][0]) >= settled

            until(some_ended, what="some ends")
            home.restart_after_kill()
        home.finish(*runs, timeout_s=120)
        until_written(home, runs)
        home.stop()
        file = max(home.paths.state_dir.glob("agent-performance-*.jsonl"))
        file.write_bytes(file.read_bytes()[:-200])  # a power cut took the end of it
        home.start()

        until_written(home, runs)


@pytest.mark.requirement("e2e:performance:doctor")
def test_doctor_reports_a_wrong_card_with_the_way_out_and_takes_agents_without_one(
    tmp_path: Path,
) -> None:
    with live_home(tmp_path, config=AGENTS, started=False) as home:
        checks = doctor(home)
        assert checks["agents"]["status"] == "ok"
        assert checks["agents"]["detail"] == "6 can work, 3 with a capability card"
        config = home.paths.config_file
        whole = config.read_text()

        config.write_text(
            f'{whole}\n[agents.odd]\nruntime = "command"\ncommand = ["true"]\n'
            'capabilities = { tags = ["a", "A "] }\nsubagents.allow_agents = ["gone"]\n'
        )
        odd = doctor(home)["agents"]
        assert odd["status"] == "warn"
        assert odd["detail"].splitlines() == [
            "agents.odd has tags twice: a: name each of capabilities.tags once",
            'agents.odd may spawn "gone", which is not configured: add [agents.gone], or take it out of subagents.allow_agents',  # noqa: E501
        ]
        assert odd["fix"]

        for card, told in (
            ('cost_tier = "pricey"', 'cost_tier must be one of "free", "cheap", "medium", "expen'),
            ('tags = [""]', "capabilities.tags[0] must be non-empty text"),
            ("tags = [1]", "capabilities.tags[0] must be non-empty text"),
            ('cost = "free"', "did you mean agents.odd.capabilities.cost_tier?"),
            ("typical_latency = 5", "typical_latency must be text of at most 100 characters"),
        ):
            config.write_text(f"{whole}\n[agents.odd.capabilities]\n{card}\n")
            refused = doctor(home)["config"]
            assert refused["status"] == "fail"
            assert told in refused["detail"]
            assert refused["fix"]


def doctor(home: LiveHome) -> dict[str, Document]:
    done = subprocess.run(
        [sys.executable, "-m", "subagents", "doctor", "--json"],
        env=home._env,
        cwd=home.work,
        capture_output=True,
        timeout=60,
        check=False,
    )
    return {each["name"]: each for each in msgspec.json.decode(done.stdout)["checks"]}
