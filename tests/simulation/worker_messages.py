"""What is sent to a run's workers is known in each session that goes on, and told there once."""

import re
from collections import defaultdict
from collections.abc import Callable
from typing import Final

from subagents.domain.lifecycle.steps import TOLD_MAX
from subagents.domain.run.events import Event, SlotGranted, SteerRequested, SteerSettled
from subagents.domain.run.run import Run
from subagents.domain.run.values import AttemptId, RunId
from subagents.ports import Launch

MARK: Final = re.compile(r"hurry-\d+-now")


def message(number: int) -> str:
    """One that is unlike all others of a simulation."""
    return f"hurry-{number}-now"


class WorkerMessages:
    """What was asked, by committed events, and what each session of a program heard.

    Args:
        fail: Takes a broken invariant and what broke it.
    """

    def __init__(self, fail: Callable[[str, str], None]) -> None:
        self._fail = fail
        self._asked: defaultdict[RunId, dict[int, str]] = defaultdict(dict)
        self._taken: set[str] = set()
        self._before: dict[tuple[RunId, int], tuple[str, ...]] = {}
        """What had been asked when an attempt was granted its slot."""
        self._session_of: dict[AttemptId, str] = {}
        self._told: defaultdict[str, list[str]] = defaultdict(list)
        """What a session was told at the beginning of its turns."""
        self._put_in: defaultdict[str, set[str]] = defaultdict(set)
        """What was put into its turns, which somebody may not know yet."""

    def forget(self) -> None:
        """The process is gone: each journal is looked at again."""
        self._asked.clear()
        self._taken.clear()
        self._before.clear()

    def look_at(self, before: Run | None, event: Event, after: Run) -> None:
        """One committed event, and the run before and after it."""
        asked = self._asked[after.id]
        match event:
            case SteerRequested(message=text) if MARK.fullmatch(text):
                asked[after.control.steers_total] = text
            case SteerSettled(number=number, taken=True) if number in asked and before is not None:
                # Where the turn was over, nobody knows whether it was read: the next one has it.
                if any(each.number == number for each in before.control.steers):
                    self._taken.add(asked[number])
            case SlotGranted():
                self._before[after.id, len(after.attempts)] = tuple(asked.values())
            case _:
                pass

    def begins(self, launch: Launch) -> None:
        """A worker was started with this."""
        session = launch.native_session or f"session of {launch.attempt_id}"
        self._session_of[launch.attempt_id] = session
        known = {*MARK.findall(launch.prompt), *self._told[session], *self._put_in[session]}
        for text in self._before.get((launch.run_id, launch.number), ())[-TOLD_MAX:]:
            if text not in known:
                self._fail(
                    "a new session knows what those before it were told",
                    f"{launch.attempt_id}: {text}",
                )
        self._tell(session, launch.prompt)

    def goes_on(self, attempt: AttemptId, text: str) -> None:
        """Its next turn was begun with this."""
        self._tell(self._session_of[attempt], text)

    def put_in(self, attempt: AttemptId, text: str) -> None:
        """It was told this in the middle of a turn."""
        session = self._session_of[attempt]
        for found in MARK.findall(text):
            if found in self._told[session]:
                self._fail("a session is told each message once", f"{session}: {found}")
            self._put_in[session].add(found)

    def _tell(self, session: str, text: str) -> None:
        told = self._told[session]
        for found in MARK.findall(text):
            # One that was put in by a daemon that died before it knew is told once more.
            if found in told or (found in self._put_in[session] and found in self._taken):
                self._fail("a session is told each message once", f"{session}: {found}")
            told.append(found)
