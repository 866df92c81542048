"""A worker repeats every secret it knows at every interface: none of them arrives anywhere."""

import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.file_contents import contents
from tests.e2e.live_home import DEFAULTS, LiveHome, live_home, until
from tests.planted import SHOWN, found_in, private_key
from tests.published_secrets import made_of

from subagents.domain.redaction.visible import visible
from subagents.domain.run.events import Alerted

BLABBER = """
import json, os, pathlib, sys, time
from subagents.client.client import Client

knows = json.load(open("secrets.json"))
lines, every = knows["lines"], "\\n".join(knows["lines"])
here = Client(os.environ["SUBAGENTS_SOCKET"])
run = "/v1/runs/" + os.environ["SUBAGENTS_RUN_ID"]

def say(kind, **event):
    print(json.dumps({"subagents": kind, **event}), flush=True)

def halves(most):
    held = ""
    for line in lines:
        if held and len(held) + len(line) >= most:
            yield held
            held = ""
        held += line + " "
    yield held

# -- its stream
for stream in (sys.stdout, sys.stderr):
    for line in lines:
        print("here it is:", line, file=stream, flush=True)
    print("error: it failed with", every, file=stream, flush=True)
say("text", text=every)
say("thinking", text=lines[0] + " and " + every)
say("system", text=every)
say("error", text="401 for " + every, api=True, retry="1/3")
for line in lines:
    say("tool", name="Bash", input={"command": "login " + line}, output=every, isError=True,
        exitCode=1)
say("tool", name="Bash", input={"command": "git commit -m '" + lines[3] + "'"}, exitCode=0,
    output="[main abc1234] " + lines[3])
say("tool", name="TodoWrite", output=every,
    input={"todos": [{"content": line, "status": "in_progress"} for line in lines]})
say("tool", name="Edit", input={"file_path": "src/" + lines[4]}, output=every)
say("tool", name=lines[5], input=every, output=every)
say("progress", phase=lines[6])
say("usage", tokensIn=5)

# -- the tools of a worker
for message in halves(3000):
    here.post(run + "/notify", {"message": message})
here.post(run + "/notify", {"message": lines[7], "priority": "blocker"})
for part in halves(3000):
    here.post("/v1/requests", {
        "runId": os.environ["SUBAGENTS_RUN_ID"], "question": part, "context": part,
        "options": lines[:3], "timeoutSeconds": 1, "defaultAnswer": part,
    })
here.post(run + "/progress", {"phase": lines[8], "metrics": {"seen": lines[9]}})
here.post(run + "/report", {
    "summary": every[:3000], "blockers": lines[10:20], "warnings": lines[20:30],
    "artifacts": [{"path": lines[30], "description": lines[31]}],
})
say("report", summary=every, warnings=lines)
while not pathlib.Path("go").exists():
    time.sleep(0.02)
if sys.argv[1] == "fail":
    say("result", text=every, isError=True, error=every)
    sys.exit(3)
if sys.argv[1] == "say":
    say("result", text="done with " + every)
"""

AGENT = """
[agents.blabber]
runtime = "command"
command = [{python}, {script}, "{{task}}"]
grace_seconds = 0.5
env = {{ OWN_TOKEN = "green horse staple" }}
"""
OWN = "green horse staple"
HIDDEN = tuple(made_of("ghp_{word:36}", random.Random(seed)) for seed in (1, 2))  # noqa: S311
"""Printed with an escape sequence, and with a zero-width space inside."""

Document = dict[str, Any]


def leaked(text: str) -> list[str]:
    """Kinds of secrets in a text that may be JSON, inside JSON."""
    read = visible(text.replace("\\\\", "\\").replace("\\n", "\n").replace('\\"', '"'))
    return [*found_in(read), *(each for each in HIDDEN if each in read)]


def answers(home: LiveHome, run_id: str) -> dict[str, Document]:
    """Everything that can be asked about a run, at every interface that answers."""
    run = f"/v1/runs/{run_id}"
    found = {
        path: home.get(path, **query)
        for path, query in (
            (run, {}),
            (f"{run}/status", {}),
            (f"{run}/result", {}),
            (f"{run}/timeline", {"limit": 500}),
            (f"{run}/why", {}),
            (f"{run}/tree", {}),
            (f"{run}/progress", {}),
            ("/v1/tree", {}),
            ("/v1/runs", {}),
            ("/v1/inbox", {}),
            ("/v1/attention", {}),
            ("/v1/diagnostics", {}),
        )
    }
    found["log"] = home.get(f"{run}/log", limit=10_000)
    found["summary"] = home.get(f"{run}/log", summary=1)
    for name, arguments in (
        ("sessions_history", {"sessionKey": home.show(run_id)["sessionKey"], "limit": 100}),
        ("subagents", {"action": "log", "target": run_id, "limit": 1000}),
        ("subagents", {"action": "status", "target": run_id}),
        ("subagents", {"action": "result", "target": run_id}),
    ):
        answered = home.post(f"/v1/tools/{name}", arguments)
        assert not answered.get("isError"), answered
        found[f"{name} {arguments.get('action')}"] = answered
    return found


@pytest.mark.requirement("redact:every-interface")
def test_no_planted_secret_reaches_the_database_a_file_or_an_answer(tmp_path: Path) -> None:
    script = tmp_path / "blabber.py"
    script.write_text(BLABBER)
    agent = AGENT.format(python=json.dumps(sys.executable), script=json.dumps(str(script)))
    with live_home(tmp_path, config=DEFAULTS + agent) as home:
        hidden = [
            f"{each[:12]}{sign}{each[12:]}"
            for each, sign in zip(HIDDEN, ("\x1b[31m", "\u200b"), strict=True)
        ]
        lines = [*SHOWN.values(), *private_key("RSA ").split("\n"), f"mine is {OWN}", *hidden]
        (home.work / "secrets.json").write_text(json.dumps({"lines": lines}))

        runs = [home.spawn(task, agent="blabber") for task in ("say", "fail", "silent")]

        def are_told() -> bool:
            told = [{event.alert.kind for event in home.events(run_id, Alerted)} for run_id in runs]
            return all({"api_error", "failure_loop", "task_milestone"} <= kinds for kinds in told)

        until(are_told, what="the alerts of what they said")
        (home.work / "go").touch()
        home.wait(*runs)
        rows = {run_id: home.show(run_id) for run_id in runs}
        assert [row["outcome"]["status"] for row in rows.values()] == ["ok", "error", "ok"], [
            row["outcome"]["error"][-600:] for row in rows.values()
        ]

        # -- it was all said, and is all there without the secrets
        for run_id in runs:
            found = answers(home, run_id)
            for interface, document in found.items():
                assert leaked(json.dumps(document, ensure_ascii=False)) == [], interface
                assert OWN not in json.dumps(document), interface
            types = {line["type"] for line in found["log"]["lines"]}
            assert types == {"text", "thinking", "tool", "error", "system", "user"}
            shown = [line["text"] for line in found["log"]["lines"]]
            assert any("postgres://ann:[redacted]@db.internal" in text for text in shown)
            assert "mine is [redacted]" in "\n".join(shown)
        kinds = {row[0] for row in home.read("SELECT DISTINCT kind FROM inbox")}
        assert {"announcement", "notice", "blocker", "question", "alert"} <= kinds

        # -- nothing of it is left when the attempts are over
        def is_let_go() -> bool:
            left = (content for _, content in contents(home.paths.attempts_dir))
            return not any(leaked(each.decode("utf-8", "replace")) for each in left)

        until(is_let_go, what="the raw output of the attempts is gone")
        home.stop()
        for file in (home.root / "home").rglob("*"):
            if file.is_file():
                content = file.read_bytes().decode("utf-8", "replace")
                assert leaked(content) == [], file
                if "transcripts" in file.parts or "progress" in file.parts:
                    assert OWN not in content, file


@pytest.mark.requirement("redact:callers-words")
def test_the_callers_own_words_are_kept_and_reach_the_worker_as_they_are(tmp_path: Path) -> None:
    with live_home(tmp_path) as home:
        password = SHOWN["password"].partition(" ")[2]
        run_id = home.spawn(f"printf %s '{SHOWN['password']}' > given; echo did it")
        home.finish(run_id)

        assert (home.work / "given").read_text() == SHOWN["password"]
        assert password in home.stored()[run_id].spec.task
        log = home.get(f"/v1/runs/{run_id}/log")
        assert password not in json.dumps(log)
