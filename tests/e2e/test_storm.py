"""Everything at once: kills at random moments, racing spawns, many ends in the same instant."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.e2e.live_home import MARK_ATTEMPT, Document, LiveHome, T, audit, live_home, until

from subagents.client.client import Client
from subagents.domain.run.run import SETTLED
from subagents.errors import Forbidden, Unavailable

STORM_S = 60.0


# -- a storm of kills -----------------------------------------------------------------------------


def patiently(call: Callable[[], T]) -> T:
    """Repeat a call that can be repeated until a daemon is there to answer it."""
    due = time.monotonic() + STORM_S
    while True:
        try:
            return call()
        except Unavailable:
            assert time.monotonic() < due, "no daemon came back"
            time.sleep(0.01)


class StormClient:
    """Spawns with idempotency keys, waits and acknowledges, whatever happens to the daemon."""

    def __init__(self, home: LiveHome, number: int) -> None:
        self._home = home
        self._number = number
        self._client = home.client(session=f"agent:main:caller{number}", reader=f"r{number}")
        self.accepted: dict[str, str] = {}
        self.handed: Counter[str] = Counter()
        self.outcomes: dict[str, str] = {}

    def work(self, specs: Sequence[Document]) -> None:
        for index, spec in enumerate(specs):
            key = f"key-{self._number}-{index}"
            body = self._home.spawn_body(**spec, idempotencyKey=key)
            receipt = patiently(lambda body=body: self._client.post("/v1/runs", body))  # type: ignore[misc]  # the default binds this body
            self.accepted[key] = str(receipt["runId"])
        left = set(self.accepted.values())
        while left:
            body = {"runIds": sorted(left), "until": "any", "timeoutSeconds": 5}
            answered: Document = patiently(lambda body=body: self._client.post("/v1/wait", body))  # type: ignore[misc]
            for item in answered["completed"]:
                self.outcomes[item["runId"]] = item["outcome"]["status"]
                self.handed[item["runId"]] += item["messageId"] in answered["messages"]
            ids = {"messageIds": answered["messages"]}
            patiently(lambda ids=ids: self._client.post("/v1/inbox/ack", ids))  # type: ignore[misc]
            left -= {item["runId"] for item in answered["completed"]}
        self._client.close()


def storm_specs(chance: random.Random) -> list[Document]:
    """Five runs of mixed kinds; what each must come to is in its label."""
    nap = f"{chance.uniform(0.05, 0.8):.3f}"
    retry = f'{MARK_ATTEMPT}; sleep 0.1; [ "$SUBAGENTS_ATTEMPT_NUMBER" -ge 2 ] && echo r || exit 1'
    file = f"made-{chance.getrandbits(40)}"
    contract = {"artifacts": [{"path": file, "minBytes": 2}]}
    return [
        {"task": f"{MARK_ATTEMPT}; sleep {nap}; echo a", "label": "ok-plain"},
        {"task": f"{MARK_ATTEMPT}; sleep {nap}; exit 3", "label": "error-exit"},
        {"task": retry, "label": "ok-retry", "retryCount": 2, "retryDelay": 100},
        {
            "task": f"{MARK_ATTEMPT}; sleep {nap}; echo made > {file}",
            "label": "ok-contract",
            "verification": contract,
        },
        {"task": f"{MARK_ATTEMPT}; cat", "label": "ok-after", "chainAfter": "ok-plain"},
    ]


@pytest.mark.requirement("e2e:storm", "e2e:fold")
@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.tier("all")) for seed in range(2, 20))]
)
def test_ten_kills_among_twenty_runs_lose_nothing_and_repeat_nothing(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)  # noqa: S311  # moments of kills, no secret
    with live_home(tmp_path) as home:
        callers = [StormClient(home, number) for number in range(4)]
        plans = [storm_specs(chance) for _ in callers]
        with ThreadPoolExecutor(len(callers)) as pool:
            working = [
                pool.submit(caller.work, plan) for caller, plan in zip(callers, plans, strict=True)
            ]
            for _ in range(10):
                time.sleep(chance.uniform(0, 0.25))
                home.restart_after_kill()
            for each in working:
                each.result(timeout=STORM_S)
        accepted = {run_id for caller in callers for run_id in caller.accepted.values()}
        assert len(accepted) == 20
        until(
            lambda: not home.effects_left() and not home.marked(),
            what="all effects done and all processes gone",
        )
        home.stop()

        found = audit(home, accepted)
        assert set(found.runs) == set(home.stored())
        for run_id, run in found.runs.items():
            assert run.phase in SETTLED
            assert run.outcome is not None
            assert run.outcome.status == run.resolved.label.partition("-")[0], run
            assert found.consumed[run_id] == 1
        marks = Counter(home.marks_written())
        assert set(marks.values()) == {1}, "an attempt ran twice"
        made = {
            f"{run.id}#{n + 1}" for run in found.runs.values() for n in range(len(run.attempts))
        }
        assert set(marks) == made


# -- racing spawns --------------------------------------------------------------------------------


def race(
    home: LiveHome, count: int, threads: int, body: Document, *, is_agent: bool = False
) -> tuple[list[str], list[str]]:
    """Spawn ``count`` runs from many threads at once; run ids, and messages of refusals."""
    headers = {"x-subagents-caller": "agent"} if is_agent else {}
    accepted: list[str] = []
    refused: list[str] = []
    gate = threading.Barrier(threads)

    def work(share: int) -> None:
        with Client(home.paths.socket, timeout_s=60, headers=headers) as client:
            gate.wait(20)
            for _ in range(share):
                try:
                    accepted.append(str(client.post("/v1/runs", body)["runId"]))
                except Forbidden as error:
                    refused.append(error.message)

    shares = [count // threads + (number < count % threads) for number in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        for each in [pool.submit(work, share) for share in shares]:
            each.result(timeout=90)
    return accepted, refused


@pytest.mark.requirement("e2e:cap:exact")
@pytest.mark.parametrize("count", [50, pytest.param(1000, marks=pytest.mark.tier("all"))])
def test_racing_spawns_over_a_cap_of_five_are_accepted_exactly_five_times(
    tmp_path: Path, count: int
) -> None:
    config = "[agents.defaults.subagents]\nmax_children_per_agent = 5\n"
    with live_home(tmp_path, config=config) as home:
        body = home.spawn_body("while :; do sleep 0.1; done")
        accepted, refused = race(home, count, 30, body, is_agent=True)

        assert len(accepted) == 5
        assert len(refused) == count - 5
        assert all("agents.defaults.subagents.max_children_per_agent" in each for each in refused)
        assert len(home.stored()) == 5
        for run_id in accepted:
            home.post(f"/v1/runs/{run_id}/cancel", {})
        assert len(home.finish(*accepted)) == 5


@pytest.mark.requirement("e2e:cap:burst", "e2e:lanes")
@pytest.mark.parametrize(
    "count", [50, *(pytest.param(many, marks=pytest.mark.tier("all")) for many in (300, 1000))]
)
def test_a_burst_of_spawns_under_a_raised_cap_loses_none_and_never_exceeds_the_lane(
    tmp_path: Path, count: int
) -> None:
    config = "[agents.defaults.subagents]\nmax_children_per_agent = 2000\nmax_concurrent = 4\n"
    with live_home(tmp_path, config=config) as home:
        # mkdir is atomic: a worker that finds more than three others at work says so.
        task = f'{MARK_ATTEMPT}; mkdir "$MARKS.$$"; set -- "$MARKS".*; echo $#; rmdir "$MARKS.$$"'
        accepted, refused = race(home, count, 20, home.spawn_body(task))
        assert not refused
        assert len(set(accepted)) == count

        items = home.finish(*accepted, timeout_s=100)
        assert {item["outcome"]["status"] for item in items} == {"ok"}
        assert max(int(item["result"]) for item in items) <= 4
        assert Counter(home.marks_written()) == Counter(f"{run_id}#1" for run_id in accepted)


@pytest.mark.requirement("e2e:idempotency")
def test_the_same_idempotency_key_racing_from_many_threads_makes_one_run(tmp_path: Path) -> None:
    with live_home(tmp_path) as home:
        for turn in range(5):
            body = home.spawn_body(f"{MARK_ATTEMPT}; echo once", idempotencyKey=f"key {turn}")
            accepted, refused = race(home, 40, 20, body)
            assert not refused
            assert len(accepted) == 40
            assert len(set(accepted)) == 1
            assert home.finish(accepted[0])[0]["result"] == "once"
        assert len(home.marks_written()) == len(home.stored()) == 5


# -- many ends at once ----------------------------------------------------------------------------


def fifty_behind_a_barrier(home: LiveHome) -> list[str]:
    """50 workers that all end as soon as the file ``go`` is there."""
    task = f"{MARK_ATTEMPT}; until [ -e go ]; do sleep 0.02; done; echo $SUBAGENTS_RUN_ID"
    run_ids = [home.spawn(task) for _ in range(50)]
    until(lambda: len(home.marks_written()) == 50, what="all 50 at work")
    return run_ids


@pytest.mark.requirement("e2e:handoff:waiting", "field:claude-code-87675")
def test_claude_code_87675_fifty_simultaneous_finishes_are_fifty_results_for_a_waiting_caller(
    tmp_path: Path,
) -> None:
    with live_home(tmp_path) as home, ThreadPoolExecutor(1) as pool:
        run_ids = fifty_behind_a_barrier(home)
        waiting = pool.submit(home.wait, *run_ids, timeout_s=60)
        (home.work / "go").touch()
        answered = waiting.result(60)

        assert not answered["pending"]
        assert {item["runId"]: item["result"] for item in answered["completed"]} == {
            run_id: run_id for run_id in run_ids
        }
        assert sorted(answered["messages"]) == sorted(f"{r}:announce" for r in run_ids)
        assert home.post("/v1/inbox/ack", {"messageIds": answered["messages"]}) == {"consumed": 50}
        assert home.post("/v1/inbox", {"limit": 100})["messages"] == []
        home.stop()
        assert set(audit(home, run_ids).consumed.values()) == {1}


@pytest.mark.requirement("e2e:handoff:inbox", "field:claude-code-87675")
def test_claude_code_87675_a_caller_that_never_waited_finds_each_of_fifty_results_once(
    tmp_path: Path,
) -> None:
    with live_home(tmp_path) as home:
        run_ids = fifty_behind_a_barrier(home)
        (home.work / "go").touch()
        unread = "SELECT count(*) FROM inbox WHERE consumed_at_ms IS NULL"
        until(lambda: home.read(unread) == [(50,)], what="50 messages on disk")

        messages = home.post("/v1/inbox", {"limit": 100})["messages"]
        assert Counter(each["runId"] for each in messages) == Counter(run_ids)
        for each in messages:
            assert each["runId"] in each["text"]
        ids = [each["id"] for each in messages]
        assert home.post("/v1/inbox/ack", {"messageIds": ids}) == {"consumed": 50}
        assert home.post("/v1/inbox/ack", {"messageIds": ids}) == {"consumed": 0}
        assert home.post("/v1/inbox", {"limit": 100})["messages"] == []
        assert home.wait(timeout_s=0)["completed"] == []


@pytest.mark.requirement("e2e:handoff:two-readers")
def test_two_readers_of_one_session_share_the_messages_and_none_is_consumed_twice(
    tmp_path: Path,
) -> None:
    with live_home(tmp_path) as home:
        run_ids = [home.spawn("echo x", agent="quick") for _ in range(60)]
        taken: dict[str, list[str]] = {"one": [], "two": []}
        consumed: list[int] = []

        def read(reader: str) -> None:
            with Client(home.paths.socket, reader=reader) as client:
                due = time.monotonic() + 20
                while sum(map(len, taken.values())) < 60 and time.monotonic() < due:
                    answered: Document = client.post("/v1/inbox", {"limit": 3})
                    ids = [each["id"] for each in answered["messages"]]
                    taken[reader] += ids
                    acked: Document = client.post("/v1/inbox/ack", {"messageIds": ids})
                    consumed.append(acked["consumed"])

        with ThreadPoolExecutor(2) as pool:
            for each in [pool.submit(read, reader) for reader in taken]:
                each.result(30)

        expected = Counter(f"{run_id}:announce" for run_id in run_ids)
        assert Counter(taken["one"] + taken["two"]) == expected
        assert sum(consumed) == 60
        readers = dict(
            home.read("SELECT message_id, consumed_by FROM inbox WHERE kind = 'announcement'")
        )
        assert readers == {m: r for r, messages in taken.items() for m in messages}


@pytest.mark.requirement("e2e:handoff:two-waiters")
def test_two_waiters_for_the_same_run_both_see_it_and_one_is_handed_the_message(
    tmp_path: Path,
) -> None:
    with live_home(tmp_path) as home, ThreadPoolExecutor(8) as pool:
        run_id = home.spawn("sleep 0.3; echo x")
        body = {"runIds": [run_id], "until": "all", "timeoutSeconds": 20}

        def wait(number: int) -> Document:
            with Client(home.paths.socket, reader=f"reader-{number}") as client:
                return client.post("/v1/wait", body)

        answers = [each.result(30) for each in [pool.submit(wait, n) for n in range(8)]]
        assert [a["completed"][0]["result"] for a in answers] == ["x"] * 8
        assert sum(len(a["messages"]) for a in answers) == 1


@pytest.mark.requirement("e2e:handoff:dead-reader")
def test_what_a_reader_took_and_never_acknowledged_does_not_hide_the_messages_behind_it(
    tmp_path: Path,
) -> None:
    with live_home(tmp_path) as home:
        run_ids = [home.spawn("echo x", agent="quick") for _ in range(40)]
        unread = "SELECT count(*) FROM inbox WHERE consumed_at_ms IS NULL"
        until(lambda: home.read(unread) == [(40,)], what="40 messages on disk")
        one, two = home.client(reader="dead"), home.client(reader="alive")
        held: Document = one.post("/v1/inbox", {"limit": 30})
        rest: Document = two.post("/v1/inbox", {"limit": 5})
        assert len(held["messages"]) == 30
        assert len(rest["messages"]) == 5
        more: Document = two.post("/v1/inbox", {"limit": 20})
        taken = {each["runId"] for each in (*held["messages"], *more["messages"])}
        assert taken == set(run_ids)
