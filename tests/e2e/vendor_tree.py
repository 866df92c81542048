"""Claude Code delegates to agents of other vendors; a worker and the daemon are killed."""

import os
import signal
from pathlib import Path
from typing import Any, Final

from tests.e2e.claude_place import ClaudePlace
from tests.e2e.live_home import DEFAULTS, live_home, until
from tests.e2e.program_setups import ProgramSetup
from tests.e2e.runtime_cells import LOOP, RUN_S
from tests.e2e.scripted_model import Conversation, Say, Script, ScriptedModel, Turn, Use

from subagents.client.client import Client
from subagents.domain.run.events import AnnouncementConsumed

Document = dict[str, Any]

RUN: Final = r'"runId":"(r-[a-z0-9]+)"'
WAITS: Final = 12
"""So often the caller's model waits again; each wait is 20 s at most."""
NAMES: Final = ("first", "second", "fragile")


def show_that_all_results_arrive_once(root: Path, one: ProgramSetup, other: ProgramSetup) -> None:
    """Three runs of two vendors, contracts on each; kill -9 of one worker, then of the daemon."""
    with ScriptedModel({}) as model:
        own = root / "setups"
        own.mkdir()
        config = DEFAULTS
        for setup in (one, other):
            (own / setup.name).mkdir()
            setup.prepare(model.url, own / setup.name)
            config = setup.config(model.url, own / setup.name) + config
        with live_home(root, config=config) as home:
            claude = ClaudePlace(home, model, ceiling="full")
            agents = dict(zip(NAMES, (one, other, one), strict=True))
            for name, setup in agents.items():
                model.scripts[name] = _work(setup, name, home.work)
            model.scripts["delegate"] = _delegation(agents, claude)
            caller = claude.start("script:delegate")
            try:
                _kill_in_the_middle(claude)
                out, err = caller.communicate(timeout=RUN_S * 2)
            finally:
                caller.kill()
                caller.wait()
            assert caller.returncode == 0, err
            _everything_once(claude, out)


def _work(setup: ProgramSetup, name: str, work: Path) -> Script:
    """Waits until it may go on, then writes what its contract asks for."""
    return [
        setup.shell(f"echo $$ >> {name}.begun; " + LOOP.format(gate="go")),
        setup.edit(str(work / f"{name}.json"), f'{{"name": "{name}"}}'),
        Say(f"{name} is written"),
    ]


def _delegation(agents: dict[str, ProgramSetup], claude: ClaudePlace) -> Script:
    spawns = tuple(
        Use(
            "sessions_spawn",
            {
                "task": f"script:{name}",
                "agentId": setup.name,
                "label": name,
                "retryCount": 1,
                "retryDelay": 10,
                "verification": {"artifacts": [{"path": f"{name}.json", "json": True}]},
            },
        )
        for name, setup in agents.items()
    )

    def wait_or_tell(seen: Conversation) -> Turn:
        told = [name for name in NAMES if f"{name} is written" in "\n".join(seen.results)]
        if len(told) == len(NAMES):
            # A model thinks for a second at least before it speaks; what it took is read then.
            until(lambda: not _unread(claude), what="all is read", within_s=RUN_S)
            return Say("all: " + ", ".join(told))
        return _wait(seen)

    return [spawns, *[wait_or_tell] * WAITS]


def _wait(seen: Conversation) -> Use:
    arguments = {"runIds": seen.found(RUN)[:3], "until": "all", "timeoutSeconds": 20}
    return Use("sessions_wait", arguments)


def _kill_in_the_middle(claude: ClaudePlace) -> None:
    home = claude.home
    for name in NAMES:
        until(lambda name=name: _begun(home.work, name), what=f"{name} works", within_s=RUN_S)  # type: ignore[misc]
    rows = {row["label"]: row["runId"] for row in home.get("/v1/runs", limit=10)["runs"]}
    os.kill(home.worker_pid(rows["fragile"]), signal.SIGKILL)
    until(lambda: len(_begun(home.work, "fragile")) >= 2, what="it works again", within_s=RUN_S)
    home.restart_after_kill()
    (home.work / "go").touch()


def _begun(work: Path, name: str) -> list[str]:
    path = work / f"{name}.begun"
    return path.read_text().split() if path.exists() else []


def _everything_once(claude: ClaudePlace, out: str) -> None:
    home = claude.home
    assert "all: first, second, fragile" in out, out[-2000:]
    rows = {row["label"]: row["runId"] for row in home.get("/v1/runs", limit=10)["runs"]}
    assert set(rows) == set(NAMES)
    for name in NAMES:
        shown = home.show(rows[name])
        assert shown["outcome"]["status"] == "ok", shown["outcome"]
        assert shown["verification"]["status"] == "passed"
        assert len(shown["attempts"]) == (2 if name == "fragile" else 1)
        assert len(home.events(rows[name], AnnouncementConsumed)) == 1
    assert _unread(claude) == []


def _unread(claude: ClaudePlace) -> list[Document]:
    with Client(claude.home.paths.socket, session=claude.session_key) as client:
        rows = client.get("/v1/inbox")["messages"]
    assert isinstance(rows, list)
    return rows
