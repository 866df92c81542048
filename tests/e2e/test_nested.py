"""Main → orchestrator → workers, with real processes that use the command line they are given."""

import json
import sys
from pathlib import Path

import pytest
from tests.e2e.live_home import DEFAULTS, Audit, LiveHome, audit, live_home, until

from subagents.domain.run.events import AnnouncementConsumed, DeliverySettled
from subagents.domain.run.outcome import (
    Deferred,
    Delivered,
    DeliveryFailed,
    DeliveryPath,
)
from subagents.domain.run.run import Phase

GRACE_S = 0.5
COURIER = """
import os, sys, time
place, session, run = sys.argv[1:]
text = sys.stdin.read()
there = lambda name: os.path.exists(os.path.join(place, name))
with open(os.path.join(place, "tries"), "a") as tries:
    tries.write(f"{os.environ['SUBAGENTS_DELIVERY_ID']}\\n")
if there("refuse"):
    sys.exit("nobody home")
while there("hold"):
    time.sleep(0.02)
with open(os.path.join(place, "told"), "a") as told:
    told.write(f"{session} {run} {len(text)}\\n")
"""


class Chat:
    """An outside channel that the agent ``main`` is bound to; it notes what it was told."""

    def __init__(self, root: Path) -> None:
        self.place = root / "chat"
        self.place.mkdir()
        script = self.place / "courier.py"
        script.write_text(COURIER)
        argv = [sys.executable, "-S", str(script), str(self.place), "{sessionKey}", "{runId}"]
        self.config = f"[agents.main.courier]\ncommand = {json.dumps(argv)}\n"

    def lines(self, name: str) -> list[str]:
        try:
            return (self.place / name).read_text().splitlines()
        except FileNotFoundError:
            return []

    @property
    def told(self) -> list[str]:
        """The runs whose end was told, in order."""
        return [line.split()[1] for line in self.lines("told")]

    @property
    def tries(self) -> list[str]:
        return self.lines("tries")


def children_of(home: LiveHome, run_id: str, count: int = 1) -> list[str]:
    def look() -> list[str] | None:
        found = [run.id for run in home.stored().values() if run.lineage.requester_run == run_id]
        return sorted(found) if len(found) >= count else None

    return list(map(str, until(look, what=f"{count} children of {run_id}")))


def audit_at_rest(home: LiveHome) -> Audit:
    """As ``audit``, once every run is over: before, two looks at the disk are not one."""
    until(
        lambda: all(run.phase is Phase.COMPLETED for run in home.stored().values()),
        what="every run completed",
    )
    return audit(home)


def readers(home: LiveHome, run_id: str) -> list[str]:
    return [event.reader for event in home.events(run_id, AnnouncementConsumed)]


def inbox_of(home: LiveHome, session: str) -> list[str]:
    """The runs whose announcement lies unread there."""
    sql = (
        "SELECT run_id FROM inbox WHERE session_key = ? AND consumed_at_ms IS NULL ORDER BY number"
    )
    return [run_id for (run_id,) in home.read(sql, (session,))]


def script(home: LiveHome, name: str, text: str) -> str:
    """A shell script in the working directory, and the task that runs it."""
    (home.work / name).write_text(f"set -eu\n{text}\n")
    return f"exec sh {name}"


SPAWN = "subagents spawn --agent sh"
SPAWN_TWO = f"a=$({SPAWN} 'echo one'); b=$({SPAWN} 'echo two')"
HOLD = "until [ -e go ]; do sleep 0.05; done"


@pytest.mark.requirement("e2e:nested:inward", "delivery:nested-is-internal", "delivery:bubbles-up")
def test_workers_report_to_their_orchestrator_and_only_its_own_end_leaves_the_house(
    tmp_path: Path,
) -> None:
    chat = Chat(tmp_path)
    with live_home(tmp_path, config=chat.config + DEFAULTS, grace_s=GRACE_S) as home:
        task = script(
            home, "lead", f'{SPAWN_TWO}; echo "heard:"; subagents wait "$a" "$b" 2>/dev/null'
        )
        lead = home.spawn(task)
        until(lambda: chat.told, what="the end of the orchestrator in the chat")

        assert chat.told == [lead]
        workers = children_of(home, lead, 2)
        found = audit_at_rest(home)
        result = found.runs[lead].result or ""
        assert result.startswith("heard:")
        assert "one" in result
        assert "two" in result
        assert found.consumed == dict.fromkeys([lead, *workers], 1)
        assert readers(home, lead) == ["command"]
        for worker in workers:
            assert found.runs[worker].requester == found.runs[lead].session.first_key
            (record,) = [event.record for event in home.events(worker, DeliverySettled)]
            assert (record.nested, record.route_mode) == (True, "internal")
            assert record.outcome == Delivered(path=DeliveryPath.QUEUED) or (
                record.phases == ("consumed-already",)
            )


@pytest.mark.requirement("e2e:nested:descendants-active", "children:appended")
def test_an_orchestrator_that_ends_early_announces_when_its_workers_have_and_with_their_results(
    tmp_path: Path,
) -> None:
    chat = Chat(tmp_path)
    with live_home(tmp_path, config=chat.config + DEFAULTS, grace_s=GRACE_S) as home:
        task = script(
            home,
            "lead",
            f"{SPAWN} '{HOLD}; echo one' >&2; {SPAWN} '{HOLD}; echo two' >&2; echo started them",
        )
        lead = home.spawn(task)
        workers = children_of(home, lead, 2)
        home.until_phase(lead, "ending")
        assert "[descendants-active]" in home.get(f"/v1/runs/{lead}/why")["why"]
        home.restart_after_kill()
        assert home.row(lead)["phase"] == "ending"
        assert chat.tries == []
        (home.work / "go").touch()
        until(lambda: chat.told, what="the end of the orchestrator in the chat")

        assert chat.told == [lead]
        found = audit_at_rest(home)
        result = found.runs[lead].result or ""
        assert result.startswith("started them")
        assert "[Sub-agent results]" in result
        assert result.index("one") != result.index("two")
        assert found.consumed == dict.fromkeys([lead, *workers], 1)
        own = found.runs[lead].session.first_key
        assert all(readers(home, worker) == [found.runs[lead].session_key] for worker in workers)
        assert inbox_of(home, own) == []


@pytest.mark.requirement("e2e:nested:orchestrator-killed", "delivery:bubbles")
def test_what_a_killed_orchestrators_workers_found_reaches_the_next_above_it(
    tmp_path: Path,
) -> None:
    chat = Chat(tmp_path)
    with live_home(tmp_path, config=chat.config + DEFAULTS, grace_s=GRACE_S) as home:
        script(home, "middle", f"{SPAWN} '{HOLD}; echo from the leaf' >&2; sleep 600")
        top = home.spawn(
            script(home, "top", f"a=$({SPAWN} 'exec sh middle'); subagents wait \"$a\" || true")
        )
        (middle,) = children_of(home, top)
        (leaf,) = children_of(home, middle)
        home.until_phase(leaf, "running")
        home.kill_run(middle)
        home.until_phase(middle, "ending", "completed")
        assert home.row(leaf)["phase"] == "running"
        (home.work / "go").touch()
        until(lambda: chat.told, what="the end of the topmost run in the chat")

        found = audit_at_rest(home)
        assert chat.told == [top]
        assert found.runs[middle].has_failed
        assert "from the leaf" in (found.runs[middle].result or "")
        assert "from the leaf" in (found.runs[top].result or "")
        assert found.consumed == dict.fromkeys([top, middle, leaf], 1)


@pytest.mark.requirement("e2e:nested:bubbles", "delivery:bubbles", "field:dead-parents-inbox")
def test_what_nobody_read_bubbles_from_ancestor_to_ancestor_and_in_the_end_to_the_operator(
    tmp_path: Path,
) -> None:
    with live_home(tmp_path, grace_s=GRACE_S) as home:
        script(home, "middle", f"{SPAWN} 'echo from the leaf' >&2; sleep 600")
        top = home.spawn(script(home, "top", f"{SPAWN} 'exec sh middle' >&2; sleep 600"))
        (middle,) = children_of(home, top)
        (leaf,) = children_of(home, middle)
        home.until_phase(leaf, "completed")
        stored = home.stored()
        inboxes = [stored[run].session.first_key for run in (middle, top)]
        assert inbox_of(home, inboxes[0]) == [leaf]

        home.post(f"/v1/runs/{middle}/cancel")
        home.until_phase(middle, "completed")
        assert (inbox_of(home, inboxes[0]), set(inbox_of(home, inboxes[1]))) == ([], {leaf, middle})

        home.restart_after_kill()
        home.post(f"/v1/runs/{top}/cancel")
        home.until_phase(top, "completed")
        assert inbox_of(home, inboxes[1]) == []
        taken = home.post("/v1/inbox", {})["messages"]
        assert {each["runId"] for each in taken} == {leaf, middle, top}
        home.post("/v1/inbox/ack", {"messageIds": [each["id"] for each in taken]})
        assert audit_at_rest(home).consumed == dict.fromkeys([top, middle, leaf], 1)


@pytest.mark.requirement("e2e:nested:cancel", "cancel:cascades", "field:children-billed-on")
def test_a_cancel_at_the_top_ends_three_levels_and_tells_of_the_top_alone(tmp_path: Path) -> None:
    chat = Chat(tmp_path)
    with live_home(tmp_path, config=chat.config + DEFAULTS, grace_s=GRACE_S) as home:
        script(home, "middle", f"{SPAWN} 'exec sleep 600' >&2; subagents wait")
        top = home.spawn(script(home, "top", f"{SPAWN} 'exec sh middle' >&2; subagents wait"))
        (middle,) = children_of(home, top)
        (leaf,) = children_of(home, middle)
        home.until_phase(leaf, "running")
        home.post(f"/v1/runs/{top}/cancel")
        until(lambda: not home.marked(), what="no process left")
        until(lambda: chat.told, what="the end of the topmost run in the chat")

        found = audit_at_rest(home)
        assert chat.told == [top]
        outcomes = [found.runs[run].outcome for run in (top, middle, leaf)]
        assert [outcome.status for outcome in outcomes if outcome] == ["cancelled"] * 3
        assert home.post("/v1/inbox", {})["messages"] == []


@pytest.mark.requirement("e2e:nested:one-slot", "field:deadlock-at-one")
def test_three_levels_that_wait_for_each_other_pass_through_a_lane_of_one_slot(
    tmp_path: Path,
) -> None:
    config = "[agents.defaults.subagents]\nmax_concurrent = 1\nmax_spawn_depth = 3\n"
    with live_home(tmp_path, config=config, grace_s=GRACE_S) as home:
        both = 'subagents wait "$a" "$b" 2>/dev/null'
        script(home, "middle", f"{SPAWN_TWO}; {both}")
        middle = f"a=$({SPAWN} 'exec sh middle'); b=$({SPAWN} 'exec sh middle')"
        tops = [home.spawn(script(home, "top", f"{middle}; {both}")) for _ in range(2)]

        items = home.finish(*tops, timeout_s=100)

        for item in items:
            said = item["result"].splitlines()
            assert said.count("one") == said.count("two") == 2
        found = audit_at_rest(home)
        assert len(found.runs) == 2 + 4 + 8
        assert set(found.consumed.values()) == {1}


# -- the courier of a session outside, on a real daemon ------------------------------------------


@pytest.mark.requirement("courier:command-exit", "delivery:direct-consumes", "delivery:traced")
def test_a_refused_push_is_tried_again_and_consumed_once(tmp_path: Path) -> None:
    chat = Chat(tmp_path)
    with live_home(tmp_path, config=chat.config + DEFAULTS) as home:
        (chat.place / "refuse").touch()
        run_id = home.spawn("echo done")
        home.until_phase(run_id, "announce_deferred")
        (chat.place / "refuse").unlink()
        home.post(f"/v1/runs/{run_id}/redeliver")
        home.until_phase(run_id, "completed")

        assert chat.told == [run_id]
        assert chat.tries == [f"{run_id}:announce"] * 2
        first, second = (event.record for event in home.events(run_id, DeliverySettled))
        assert isinstance(first.outcome, DeliveryFailed)
        assert first.outcome.error.endswith("exit code 1: nobody home")
        assert second.outcome == Delivered(path=DeliveryPath.DIRECT)
        assert (second.phases, second.route_mode) == (("direct-primary",), "bound")
        assert home.post("/v1/inbox", {})["messages"] == []
        assert audit_at_rest(home).consumed == {run_id: 1}


@pytest.mark.requirement("courier:idempotency-key", "e2e:kill:delivering")
def test_a_daemon_killed_while_a_courier_is_under_way_sends_it_again_under_the_same_id(
    tmp_path: Path,
) -> None:
    chat = Chat(tmp_path)
    with live_home(tmp_path, config=chat.config + DEFAULTS) as home:
        (chat.place / "hold").touch()
        run_id = home.spawn("echo done")
        until(lambda: chat.tries, what="a courier under way")
        home.kill()
        home.start()
        until(lambda: len(chat.tries) == 2, what="a second courier under way")
        (chat.place / "hold").unlink()
        home.until_phase(run_id, "completed")

        assert set(chat.tries) == {f"{run_id}:announce"}
        assert audit_at_rest(home).consumed == {run_id: 1}
        assert readers(home, run_id) == ["command"]


@pytest.mark.requirement("delivery:one-channel-at-a-time")
def test_a_requester_that_waits_is_told_by_its_wait_and_its_courier_is_not_called(
    tmp_path: Path,
) -> None:
    chat = Chat(tmp_path)
    with live_home(tmp_path, config=chat.config + DEFAULTS) as home:
        run_ids = [home.spawn(f"sleep 0.{number}; echo done") for number in range(5)]
        items = home.finish(*run_ids)
        for run_id in run_ids:
            home.until_phase(run_id, "completed")

        assert [item["result"] for item in items] == ["done"] * 5
        waited = [
            event.record.outcome
            for run_id in run_ids
            for event in home.events(run_id, DeliverySettled)
        ]
        told = set(chat.told)
        # One that ended before the wait began may have been pushed; none was told by both channels.
        for run_id in run_ids:
            assert readers(home, run_id) == (["command"] if run_id in told else [home.reader])
        assert any(isinstance(outcome, Deferred) for outcome in waited)
