"""A plain command says and asks everything an agent can, by the command line alone.

Each worker here calls ``subagents`` with an empty environment but for PATH and the five variables
that docs/howto/workers.md promises to it.
"""

import json
from pathlib import Path

import pytest
from tests.e2e.live_home import DEFAULTS, Document, LiveHome, live_home, until

NAMES = ("RUN_ID", "SESSION_KEY", "AGENT_ID", "TOKEN", "SOCKET")
ME = (
    'me() { env -i PATH="$PATH" '
    + " ".join(f'SUBAGENTS_{name}="$SUBAGENTS_{name}"' for name in NAMES)
    + ' subagents "$@"; }; '
)


def spawn(home: LiveHome, task: str, *, agent: str = "sh", **spec: object) -> str:
    return home.spawn(f"{ME}{task}", agent=agent, **spec)


def texts(home: LiveHome) -> list[str]:
    return [each["text"] for each in home.get("/v1/inbox")["messages"]]


def blocked(home: LiveHome, run_id: str) -> Document:
    """The run's row once it is blocked; one that ended before shows what it said."""

    def look() -> Document | None:
        row = home.row(run_id)
        assert row["phase"] != "completed", home.get(f"/v1/runs/{run_id}/log")
        return row if row["runStatus"] == "blocked" else None

    return until(look, what=f"{run_id} blocked")


@pytest.mark.requirement("e2e:command-worker:report")
def test_a_shell_line_reports_with_files_and_low_confidence(tmp_path: Path) -> None:
    with live_home(tmp_path) as home:
        run_id = spawn(
            home,
            "echo 12 > count.txt; me report 'a first try';"
            " me report 'counted, but unsure' --confidence low --artifact count.txt='the count'"
            " --artifact notes.md --warning 'two files unreadable'; echo said",
        )
        item = home.finish(run_id)[0]

        assert item["outcome"]["status"] == "ok"
        report = item["report"]
        assert (report["summary"], report["confidence"]) == ("counted, but unsure", "low")
        assert report["artifacts"] == [
            {"path": "count.txt", "description": "the count"},
            {"path": "notes.md", "description": None},
        ]
        assert report["warnings"] == ["two files unreadable"]
        node = home.get(f"/v1/runs/{run_id}/tree")
        claim = {"status": "complete", "confidence": "low", "summary": "counted, but unsure"}
        assert node["claim"] == claim


@pytest.mark.requirement("e2e:command-worker:progress")
def test_a_shell_line_shows_progress_with_metrics_and_is_told_when_it_is_too_early(
    tmp_path: Path,
) -> None:
    with live_home(tmp_path) as home:
        run_id = spawn(
            home,
            "me progress counting 40 --level L1_plan_update --metric rows=12 --metric file=a.csv;"
            " me progress counting 41 --json",
        )
        item = home.finish(run_id)[0]

        assert item["outcome"]["status"] == "ok"
        early = json.loads(item["result"].splitlines()[-1])
        assert early["status"] == "rate_limited"
        assert 1 <= early["retryAfterSeconds"] <= 30
        row = home.row(run_id)
        assert (row["latestProgress"]["phase"], row["latestProgress"]["percentComplete"]) == (
            "counting",
            40,
        )
        (kept,) = home.get(f"/v1/runs/{run_id}/progress")["updates"]
        assert (kept["metrics"], kept["level"]) == ({"rows": 12, "file": "a.csv"}, "L1_plan_update")


@pytest.mark.requirement("e2e:command-worker:notify")
def test_a_blocker_blocks_its_run_until_it_is_answered(tmp_path: Path) -> None:
    with live_home(tmp_path) as home:
        run_id = spawn(
            home,
            "me notify 'by the way'; me notify 'no credentials' --priority blocker;"
            " until [ -e go ]; do sleep 0.05; done",
        )
        row = blocked(home, run_id)
        assert row["pendingRequestCount"] == 1
        assert "no credentials" in row["blockedReason"]
        assert {"by the way", "no credentials"} <= {
            word
            for text in texts(home)
            for word in ("by the way", "no credentials")
            if word in text
        }
        (item,) = [each for each in home.get("/v1/attention")["items"] if each["runId"] == run_id]
        body = {"response": "use the other account"}
        home.post(f"/v1/requests/{item['requestId']}/respond", body)

        assert home.row(run_id)["runStatus"] == "running"
        (home.work / "go").touch()
        assert home.finish(run_id)[0]["outcome"]["status"] == "ok"


@pytest.mark.requirement("e2e:command-worker:ask")
def test_a_question_is_answered_on_the_askers_standard_output_also_over_a_restart(
    tmp_path: Path,
) -> None:
    with live_home(tmp_path) as home:
        run_id = spawn(
            home, "answer=$(me ask 'which branch?' --option main --option next); echo \"$answer!\""
        )
        assert blocked(home, run_id)["blockedReason"] == "which branch?"
        assert any("which branch?" in text for text in texts(home))
        home.restart_after_kill()
        until(lambda: home.row(run_id)["phase"] == "running", what="adopted again")
        home.post(f"/v1/requests/{run_id}:q1/respond", {"response": "next"})

        item = home.finish(run_id)[0]
        assert (item["outcome"]["status"], item["result"]) == ("ok", "next!")
        assert home.row(run_id)["pendingRequestCount"] == 0


@pytest.mark.requirement("e2e:command-worker:ask")
def test_without_an_answer_the_default_is_printed(tmp_path: Path) -> None:
    with live_home(tmp_path) as home:
        run_id = spawn(home, "me ask 'which?' --default main --timeout 1s; echo $?")

        assert home.finish(run_id)[0]["result"].split() == ["main", "0"]


@pytest.mark.requirement("e2e:command-worker:spawn")
def test_a_shell_line_hands_work_on_waits_for_it_and_uses_the_result(tmp_path: Path) -> None:
    with live_home(tmp_path) as home:
        run_id = spawn(
            home,
            "child=$(me spawn --agent sh --label inner 'echo 42');"
            ' me wait $child > /dev/null; echo "the answer is $(me result $child)"',
            label="outer",
        )
        item = home.finish(run_id)[0]

        assert (item["outcome"]["status"], item["outcome"]["error"]) == ("ok", None)
        assert "the answer is 42" in item["result"]
        tree = home.get(f"/v1/runs/{run_id}/tree")
        (inner,) = tree["children"]
        assert (inner["label"], inner["outcome"]["status"]) == ("inner", "ok")
        child = home.show(inner["runId"])
        assert (child["requesterRun"], child["depth"]) == (run_id, 2)
        # What the worker waited for is its own: nothing of it comes to the session above.
        assert not any(each["runId"] == inner["runId"] for each in home.get(
            "/v1/inbox", all=1
        )["messages"])  # fmt: skip


@pytest.mark.requirement("e2e:command-worker:depth")
def test_at_the_deepest_level_a_spawn_is_refused_and_the_key_is_named(tmp_path: Path) -> None:
    limits = DEFAULTS.replace("max_spawn_depth = 3", "max_spawn_depth = 1")
    with live_home(tmp_path, config=limits) as home:
        run_id = spawn(home, "me spawn --agent sh 'echo 42' 2>&1; echo exit $?")
        item = home.finish(run_id)[0]

        assert (
            "subagents spawn is not allowed at this depth (current depth: 1, max: 1;"
            " agents.defaults.subagents.max_spawn_depth)" in item["result"]
        )
        assert item["result"].endswith("exit 4")
        assert home.get("/v1/runs")["total"] == 1


@pytest.mark.requirement("e2e:command-worker:own-tree")
def test_a_worker_cannot_speak_for_or_read_another_run(tmp_path: Path) -> None:
    with live_home(tmp_path) as home:
        other = home.spawn("until [ -e go ]; do sleep 0.05; done", label="other")
        home.until_phase(other, "running")
        run_id = spawn(
            home,
            f"me report lies --run {other} 2>&1; echo exit $?; me show {other} 2>&1; echo exit $?;"
            f" me cancel {other} --yes 2>&1; echo exit $?",
        )
        result = home.finish(run_id)[0]["result"]

        assert result.count("exit 4") == 3, result
        assert home.row(other)["phase"] == "running"
        assert home.show(other)["attempts"][0]["report"] is None
        (home.work / "go").touch()
        assert home.finish(other)[0]["outcome"]["status"] == "ok"


@pytest.mark.requirement("e2e:command-worker:project-file")
def test_a_worker_gains_no_agent_by_writing_a_project_file(tmp_path: Path) -> None:
    """It may spawn only its own kind; the file it writes says otherwise."""
    narrow = '[agents.narrow]\nruntime = "command"\ncommand = ["sh", "-c", "{task}"]\n'
    config = f"{DEFAULTS}\n{narrow}"
    with live_home(tmp_path, config=config) as home:
        evil = (
            '[agents.evil]\nruntime = "command"\ncommand = ["sh", "-c", "{task}"]\n'
            '[agents.narrow]\nsubagents.allow_agents = ["*"]\n'
        )
        (home.work / "evil.toml").write_text(evil)
        run_id = spawn(
            home,
            "cp evil.toml subagents.toml;"
            " me spawn --agent evil 'echo gained' 2>&1; echo exit $?;"
            " me spawn --agent sh 'echo gained' 2>&1; echo exit $?;"
            " me config trust --yes 2>&1; echo exit $?;"
            " me spawn --agent narrow --json 'echo own kind' > receipt.json; me wait > waited.txt",
            agent="narrow",
        )
        item = home.finish(run_id)[0]

        assert item["result"].count("exit 4") == 3, item["result"]
        assert 'agent "narrow" may not spawn "evil"' in item["result"]
        receipt = json.loads((home.work / "receipt.json").read_text())
        (warning,) = receipt["warnings"]
        assert "subagents.toml: ignored for agents: agents.narrow.subagents" in warning
        # The person's own hand still has the whole file.
        assert home.finish(home.spawn("echo mine", agent="evil"))[0]["result"] == "mine"
