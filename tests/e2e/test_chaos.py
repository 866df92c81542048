"""Callers that do anything at any time to a daemon that is killed at any time."""

import contextlib
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.e2e.live_home import MARK_ATTEMPT, Document, LiveHome, audit, live_home, until

from subagents.client.client import Client
from subagents.errors import (
    Conflict,
    Forbidden,
    NotFound,
    SubagentsError,
    Unavailable,
    UsageError,
)

CONFIG = """
[agents.defaults.subagents]
max_children_per_agent = 400
max_concurrent = 6
max_spawn_depth = 2

[lanes.narrow]
slots = 1
"""
SEEDS = [0, 1, *(pytest.param(seed, marks=pytest.mark.tier("all")) for seed in range(2, 12))]
CALLERS = 4
KILLS = 5


class Caller:
    """Random calls; what a guardrail refuses is fine, what is accepted must hold."""

    def __init__(self, home: LiveHome, number: int, seed: int, done: threading.Event) -> None:
        self._home = home
        self._chance = random.Random(f"{seed}/{number}")  # noqa: S311  # any choice, no secret
        self._done = done
        self._number = number
        self.accepted: dict[str, str] = {}
        self.cancelled: set[str] = set()
        self.acknowledged: list[str] = []
        self._unsure: Document | None = None

    def work(self) -> None:
        home = self._home
        acts = [self._spawn, self._spawn, self._cancel, self._pause, self._look, self._read]
        with Client(
            home.paths.socket, session=f"agent:main:c{self._number}", reader=f"c{self._number}"
        ) as client:
            while not self._done.is_set():
                try:
                    self._chance.choice(acts)(client)
                except Unavailable:
                    time.sleep(0.02)
                except (Conflict, Forbidden, NotFound, UsageError):
                    continue

    def _some_run(self) -> str:
        if not self.accepted:
            raise NotFound("nothing was spawned yet")
        return self._chance.choice(list(self.accepted.values()))

    def _spawn(self, client: Client) -> None:
        if len(self.accepted) >= 40:
            raise NotFound("enough")
        key = f"key {len(self.accepted)}"
        body = self._unsure or self._home.spawn_body(**self._spec(), idempotencyKey=key)
        self._unsure = body
        try:
            self.accepted[key] = str(client.post("/v1/runs", body)["runId"])
        except Unavailable:
            raise  # whether it was accepted is found out with the very same request
        except SubagentsError:
            self._unsure = None
            raise
        self._unsure = None

    def _spec(self) -> Document:
        chance = self._chance
        nap = f"sleep {chance.uniform(0, 0.4):.2f}"
        end = chance.choice(["echo fine", "exit 4", "kill -9 $$", "exec sleep 30"])
        spec: Document = {"task": f"{MARK_ATTEMPT}; {nap}; echo made >> made; {end}"}
        if "30" in end:
            spec["runTimeoutSeconds"] = 0.5
        if chance.random() < 0.3:
            spec |= {"retryCount": 2, "retryDelay": 50}
        if chance.random() < 0.3:
            path = chance.choice(["made", "never-made"])
            on_failure = chance.choice(["fail", "retry_once", "escalate"])
            spec["verification"] = {"artifacts": [{"path": path}], "onFailure": on_failure}
        if chance.random() < 0.3 and self.accepted:
            spec["dependsOn"] = [self._some_run()]
            spec["onDependencyFailure"] = chance.choice(["cancel", "run", "fallback"])
            if spec["onDependencyFailure"] == "fallback":
                spec["fallbackAgentId"] = "quick"
            spec["dependencyTimeoutSeconds"] = chance.choice([1, 60])
        spec["priority"] = chance.randint(-3, 3)
        spec["cleanup"] = chance.choice(["keep", "delete"])
        spec["expectsCompletionMessage"] = chance.random() < 0.8
        if chance.random() < 0.2:
            spec["lane"] = "narrow"
        return spec

    def _cancel(self, client: Client) -> None:
        run_id = self._some_run()
        if self._chance.random() < 0.5:
            client.post(f"/v1/runs/{run_id}/cancel", {"reason": "chaos"})
            self.cancelled.add(run_id)

    def _pause(self, client: Client) -> None:
        run_id = self._some_run()
        client.post(f"/v1/runs/{run_id}/{self._chance.choice(['pause', 'resume', 'resume'])}", {})

    def _look(self, client: Client) -> None:
        view = self._chance.choice(["", "/why", "/timeline", "/tree", "/log", "/result", "/status"])
        assert client.get(f"/v1/runs/{self._some_run()}{view}")["runId"]

    def _read(self, client: Client) -> None:
        if self._chance.random() < 0.5:
            body = {"until": "any", "timeoutSeconds": 0.05}
            ids: list[str] = client.post("/v1/wait", body)["messages"]  # type: ignore[assignment]
        else:
            found: Document = client.post("/v1/inbox", {"limit": 5})
            ids = [each["id"] for each in found["messages"]]
        client.post("/v1/inbox/ack", {"messageIds": ids})
        self.acknowledged += ids


@pytest.mark.requirement("e2e:chaos", "e2e:fold")
@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_callers_do_and_whenever_it_is_killed_every_run_ends_once_and_adds_up(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)  # noqa: S311  # moments of kills, no secret
    with live_home(tmp_path, config=CONFIG, grace_s=0.2) as home:
        done = threading.Event()
        callers = [Caller(home, number, seed, done) for number in range(CALLERS)]
        with ThreadPoolExecutor(CALLERS) as pool:
            working = [pool.submit(caller.work) for caller in callers]
            for _ in range(KILLS):
                time.sleep(chance.uniform(0.05, 0.6))
                home.restart_after_kill()
            done.set()
            for each in working:
                each.result(30)
        held = "waiting,queued,retry_wait,spawning,running"
        for row in home.get("/v1/runs", phase=held, limit=500)["runs"]:
            with contextlib.suppress(Conflict):  # it ended meanwhile
                home.post(f"/v1/runs/{row['runId']}/resume", {})
        rest = "SELECT run_id FROM run WHERE is_over = 0"
        until(lambda: not home.read(rest), what="the end of every run", within_s=60)
        until(lambda: not home.effects_left(), what="all effects done")
        until(lambda: not home.marked(), what="no process left")
        home.stop()

        accepted = {run_id for caller in callers for run_id in caller.accepted.values()}
        # A kill can keep from a caller that its run was stored; what holds for it is the same.
        stored = {run_id for (run_id,) in home.read("SELECT run_id FROM run")}
        found = audit(home, accepted | stored)
        assert len(accepted) > 20
        assert max(found.consumed.values()) <= 1
        marks = home.marks_written()
        assert len(marks) == len(set(marks)), "an attempt ran twice"
        for caller in callers:
            for message_id in set(caller.acknowledged):
                run_id = message_id.partition(":")[0]
                if message_id.endswith(":announce"):
                    assert found.consumed[run_id] == 1
        assert home.read("SELECT 1 FROM lease") == []
