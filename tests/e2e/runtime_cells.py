"""What every runtime is asked to do, once for all of them; each cell is a real run.

A cell returns what the table says of it, and raises AssertionError when it did not hold.
"""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from tests.e2e.live_home import DEFAULTS, LiveHome, live_home, until
from tests.e2e.program_setups import ProgramSetup
from tests.e2e.scripted_model import Conversation, Say, ScriptedModel, Tokens, Use

from subagents.errors import SubagentsError
from subagents.runtimes.process.processes import scan

Document = dict[str, Any]

OK: Final = "yes"
NO: Final = "no"
RUN_S: Final = 90.0
"""Agents start in a second or two here; the machine may be busy."""
LOOP: Final = "until [ -e {gate} ]; do sleep 0.1; done; echo open"
CHILD: Final = "tail -f /dev/null"
GONE_S: Final = 15.0


@dataclass(frozen=True, slots=True)
class Place:
    """A daemon, a model and one program."""

    setup: ProgramSetup
    home: LiveHome
    model: ScriptedModel

    def spawn(self, script: str, **spec: object) -> str:
        spec.setdefault("label", script)
        return self.home.spawn(f"script:{script}", agent=self.setup.name, **spec)

    def finish(self, *run_ids: str) -> list[Document]:
        return self.home.finish(*run_ids, timeout_s=RUN_S)

    def finished(self, script: str, **spec: object) -> Document:
        return self.finish(self.spawn(script, **spec))[0]

    def path(self, name: str) -> Path:
        return self.home.work / name

    def abilities(self) -> Document:
        """What the runtime says of itself, from a run's receipt."""
        run_id = self.spawn("nothing")
        found: Document = self.home.show(run_id)["resolved"]["abilities"]
        self.finish(run_id)
        return found


@contextmanager
def place_of(setup: ProgramSetup, root: Path) -> Iterator[Place]:
    """Everything there, for the length of the block."""
    with ScriptedModel({"nothing": [Say("nothing to do")]}) as model:
        own = root / "setup"
        own.mkdir()
        setup.prepare(model.url, own)
        config = setup.config(model.url, own) + DEFAULTS
        with live_home(root, config=config, started=False) as home:
            try:
                home.start()
                yield Place(setup, home, model)
            finally:
                _end(home)


def _end(home: LiveHome) -> None:
    """What a test left at work; these workers do not carry the mark of its home."""
    if home.is_up():
        home.kill()
    root = str(home.paths.attempts_dir)

    def kill_rest() -> bool:
        left = [each.pid for each in scan() if each.marker and each.marker.root == root]
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not left

    until(kill_rest, what="the end of all workers")


def edit(place: Place) -> str:
    """Writes a file that its contract asks for."""
    target = place.path("out.json")
    place.model.scripts["edit"] = [place.setup.edit(str(target), '{"ok": true}'), Say("written")]
    done = place.finished("edit", verification={"artifacts": [{"path": "out.json", "json": True}]})
    assert done["outcome"]["status"] == "ok", done["outcome"]
    assert done["verification"]["status"] == "passed", done["verification"]
    assert target.read_text().strip() == '{"ok": true}'
    return OK


def command(place: Place) -> str:
    """Runs a command, and its model sees what came out."""
    place.model.scripts["command"] = [
        place.setup.shell("echo made-it | tee made.txt"),
        lambda seen: Say(f"saw {'made-it' in seen.results[-1]}"),
    ]
    done = place.finished("command")
    assert done["outcome"]["status"] == "ok", done["outcome"]
    assert "saw True" in done["result"], done["result"]
    assert place.path("made.txt").read_text() == "made-it\n"
    return OK


def ask(place: Place) -> str:
    """Asks its requester through our tools, and works with the answer."""
    place.model.scripts["ask"] = [
        Use("request_orchestrator", {"question": "Which colour?", "timeoutSeconds": 60}),
        lambda seen: Say(f"it is {'blue' if 'blue' in seen.results[-1] else seen.results[-1]}"),
    ]
    run_id = place.spawn("ask")
    asked = until(lambda: _open_request(place, run_id), what="a question", within_s=RUN_S)
    place.home.post(f"/v1/requests/{asked}/respond", {"response": "blue"})
    done = place.finish(run_id)[0]
    assert "it is blue" in done["result"], done
    return OK


def _open_request(place: Place, run_id: str) -> str | None:
    requests = place.home.show(run_id).get("requests") or []
    return next((each["requestId"] for each in requests if each["status"] == "pending"), None)


def spawn(place: Place) -> str:
    """Spawns a child of its own kind and hands its result on, at once and in the same turn."""
    place.model.scripts["child"] = [Say("child-result-7")]
    place.model.scripts["spawn"] = [
        Use("sessions_spawn", {"task": "script:child", "agentId": place.setup.name}),
        lambda seen: Use("sessions_wait", {"runIds": [_run_ids(seen)[0]], "timeoutSeconds": 60}),
        lambda seen: Say("child said " + " ".join(seen.found("child-result-7")[:1])),
        Say("done"),
    ]
    run_id = place.spawn("spawn")
    done = place.finish(run_id)[0]
    assert "child said child-result-7" in done["result"], done
    shown = place.home.show(run_id)
    assert shown["attempts"][-1]["turns"] == 1, shown["attempts"]
    return OK


def _run_ids(seen: Conversation) -> list[str]:
    return seen.found(r"r-[a-z0-9]{6,}")


def no_deliverable(place: Place) -> str:
    """Says that it is done and left nothing behind: that is not done."""
    place.model.scripts["lazy"] = [Say("All done, perfectly.")]
    done = place.finished("lazy", verification={"artifacts": [{"path": "missing.json"}]})
    outcome = done["outcome"]
    assert (outcome["status"], outcome["reason"]) == ("error", "verification_failed"), outcome
    return OK


def _busy(place: Place, script: str, *, gate: str) -> str:
    """A run whose worker waits in a shell command until ``gate`` is there."""
    place.model.scripts.setdefault(
        script,
        [
            place.setup.shell(f"echo $$ > {script}.pid; " + LOOP.format(gate=gate)),
            lambda seen: Say(f"heard {'turn-left' in seen.seen}"),
        ],
    )
    run_id = place.spawn(script)
    until(
        lambda: (
            (place.path(f"{script}.pid").read_text().strip() or None)
            if place.path(f"{script}.pid").exists()
            else None
        ),
        what=f"the command of {script}",
        within_s=RUN_S,
    )
    return run_id


def steer(place: Place) -> str:
    """A message in mid-turn is heard in the same turn, or in the next one."""
    run_id = _busy(place, "steer", gate="steered")
    place.home.post(f"/v1/runs/{run_id}/steer", {"message": "please turn-left"})
    if place.home.show(run_id)["resolved"]["abilities"].get("steer"):
        settled = partial(_journal_has, place, run_id, "SteerSettled")
        until(settled, what="it settled", within_s=RUN_S)
    place.path("steered").touch()
    done = place.finish(run_id)[0]
    turns = place.home.show(run_id)["attempts"][-1]["turns"]
    heard = any("turn-left" in each.seen for each in place.model.conversations)
    assert heard, done
    return "same turn" if turns == 1 else "next turn"


def _journal_has(place: Place, run_id: str, name: str) -> bool:
    return any(type(event).__name__ == name for event in place.home.journal(run_id))


def interrupt(place: Place) -> str:
    """The turn ends, with its shell child, and the session stays."""
    run_id = _busy(place, "interrupt", gate="never")
    place.home.post(f"/v1/runs/{run_id}/interrupt")
    begun = time.monotonic()
    place.home.until_phase(run_id, "completed", within_s=RUN_S)
    done = place.finish(run_id)[0]
    outcome = done["outcome"]
    assert (outcome["status"], outcome["reason"]) == ("partial", "interrupted"), outcome
    until(lambda: not place.home.of_run(run_id), what="no process left", within_s=GONE_S)
    return f"yes, {time.monotonic() - begun:.1f} s"


def cancel(place: Place) -> str:
    """Cancelled in the middle of a shell command: nothing of it is left."""
    run_id = _busy(place, "cancel", gate="never")
    begun = time.monotonic()
    place.home.post(f"/v1/runs/{run_id}/cancel")
    until(lambda: not place.home.of_run(run_id), what="no process left", within_s=GONE_S)
    took_s = time.monotonic() - begun
    assert place.finish(run_id)[0]["outcome"]["status"] == "cancelled"
    return f"none after {took_s:.1f} s"


def resume(place: Place) -> str:
    """A message to the ended session is answered with all that was said before."""
    place.model.scripts["first"] = [Say("the word is mirabelle")]
    place.model.scripts["second"] = [
        lambda seen: Say(f"remembers {'mirabelle' in str(seen.messages)}")
    ]
    run_id = place.spawn("first")
    place.finish(run_id)
    again = place.home.post(f"/v1/runs/{run_id}/send", {"message": "script:second"})
    done = place.finish(again["runId"])[0]
    assert "remembers True" in done["result"], done
    return OK


def scope(place: Place) -> str:
    """A denied shell is not there, nor is it for a child that it spawns."""
    setup = place.setup
    tried = place.path("forbidden")
    denied = setup.shell(f"touch {tried}")
    forced = Use(denied.tool, denied.arguments, is_declared=False)
    place.model.scripts["grandchild"] = [forced, Say("tried below")]
    place.model.scripts["scope"] = [
        forced,
        Use("sessions_spawn", {"task": "script:grandchild", "agentId": setup.name}),
        lambda seen: Use("sessions_wait", {"runIds": [_run_ids(seen)[-1]], "timeoutSeconds": 60}),
        Say("tried"),
    ]
    run_id = place.spawn("scope", toolsDeny=[setup.shell_tool])
    place.finish(run_id)
    assert not tried.exists(), "the denied command was run"
    assert any("tried below" in str(row.get("result")) for row in _below(place, run_id)), "no child"
    return OK


def _below(place: Place, run_id: str) -> list[Document]:
    rows = place.home.get("/v1/runs", tree=run_id, limit=10)["runs"]
    return [place.home.show(row["runId"]) for row in rows if row["runId"] != run_id]


def usage(place: Place) -> str:
    """Tokens are counted; what they cost is known or said to be unknown."""
    place.model.scripts["usage"] = [Say("counted", tokens=Tokens(1200, 34))]
    used = place.finished("usage")["usage"]
    assert used["tokensIn"] >= 1200, used
    assert used["tokensOut"] >= 34, used
    cost = used.get("costUsd")
    return "tokens, no cost" if cost is None else f"tokens, ${cost:.4f}"


def survives(place: Place) -> str:
    """The daemon is killed in the middle: one attempt, one result, nothing asked twice."""
    run_id = _busy(place, "survives", gate="up-again")
    place.home.restart_after_kill()
    place.path("up-again").touch()
    done = place.finish(run_id)[0]
    assert done["outcome"]["status"] == "ok", done["outcome"]
    shown = place.home.show(run_id)
    assert (len(shown["attempts"]), shown["attempts"][0]["turns"]) == (1, 1), shown["attempts"]
    starts = [each for each in place.model.conversations if each.place() == ("survives", 0)]
    assert len(starts) == 1, f"the model was asked {len(starts)} times to begin"
    return OK


CELLS: Final[dict[str, Callable[[Place], str]]] = {
    "edit": edit,
    "command": command,
    "ask": ask,
    "spawn": spawn,
    "no deliverable": no_deliverable,
    "steer": steer,
    "interrupt": interrupt,
    "cancel": cancel,
    "resume": resume,
    "scope": scope,
    "usage": usage,
    "daemon killed": survives,
}
NEEDS: Final = {
    "steer": ("steer", "resume"),
    "interrupt": ("interrupt",),
    "resume": ("resume",),
    "scope": ("scope_tools",),
    "usage": ("usage",),
}
"""A cell whose runtime has none of these abilities is not asked: it says no by itself."""


def filled(setup: ProgramSetup, root: Path) -> dict[str, str]:
    """The row of one program: every cell's text, or ``FAILED: …``."""
    with place_of(setup, root) as place:
        abilities = place.abilities()
        return {name: asked(place, name) if _can(name, abilities) else NO for name in CELLS}


def _can(cell: str, abilities: dict[str, object]) -> bool:
    needs = NEEDS.get(cell, ())
    return not needs or any(abilities.get(_camel(each)) for each in needs)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def asked(place: Place, name: str) -> str:
    """One cell's text."""
    try:
        return CELLS[name](place)
    except (AssertionError, SubagentsError, KeyError, IndexError) as error:
        return f"FAILED: {type(error).__name__}: {_short(str(error))}"


def _short(text: str) -> str:
    return " ".join(text.split())[:200]
