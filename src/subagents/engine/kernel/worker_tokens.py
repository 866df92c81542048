"""Run-scoped tokens: by one of these a worker proves which attempt of which run it belongs to.

Form: ``sa_<runId>_<attempt>_<43 url-safe characters>``. The store keeps its SHA-256 only; the token
itself is in this process's memory until its worker is started, then in the worker's environment.
A crash in between loses it, so that a new one is issued before the runtime is asked again.

See docs/decisions/0014.
"""

import hashlib
import hmac
import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from subagents.domain.lifecycle.reduce import may_call
from subagents.domain.run.run import Run
from subagents.domain.run.values import RunId, SessionKey
from subagents.errors import Unauthorized, Unavailable
from subagents.ports import TOKEN_VARIABLE

SECRET_BYTES: Final = 32
RANDOM_PART: Final = r"[A-Za-z0-9_-]{43}"
"""32 random bytes in url-safe base64."""
_TOKEN: Final = re.compile(
    rf"sa_(?P<run>[a-z0-9-]{{1,64}})_(?P<attempt>[1-9][0-9]{{0,5}})_{RANDOM_PART}"
)
_HINT: Final = "a worker's token dies with its attempt; end this process, its work is over"


class Identity(NamedTuple):
    """What a valid token stands for."""

    run_id: RunId
    attempt: int
    session_key: SessionKey


class Issued:
    """Tokens whose workers are not started yet, by run; in memory only."""

    def __init__(self) -> None:
        self._tokens: dict[RunId, tuple[int, str]] = {}

    def issue(self, run_id: RunId, attempt: int, secret: str) -> str:
        """Make the attempt's next token and return its hash; ``secret`` has 43 characters."""
        token = f"sa_{run_id}_{attempt}_{secret}"
        self._tokens[run_id] = (attempt, token)
        return digest(token)

    def get(self, run_id: RunId, attempt: int) -> str | None:
        """The attempt's token; None when this process never issued one, or threw it away."""
        number, token = self._tokens.get(run_id, (0, ""))
        return token if number == attempt else None

    def throw_away(self, run_id: RunId, attempt: int | None = None) -> None:
        """Its worker has it now, or none ever will; None = whatever the run has."""
        if attempt is None or self.get(run_id, attempt) is not None:
            self._tokens.pop(run_id, None)


def digest(token: str) -> str:
    """What is stored of a token: 64 hexadecimal digits."""
    return hashlib.sha256(token.encode()).hexdigest()


def identify(token: str, runs: Mapping[RunId, Run], aside: Mapping[str, str]) -> Identity:
    """Which attempt of which run ``token`` stands for.

    Args:
        token: As it was presented.
        runs: Every open run, as committed.
        aside: Why runs are set aside, by id.

    Raises:
        Unavailable: What is stored of the run that it names is damaged.
        Unauthorized: It is no token, unknown, or its attempt is over. ``details`` name the run
            that the token names, genuine or not.
    """
    found = _TOKEN.fullmatch(token)
    if found is None:
        raise Unauthorized(
            "the bearer token is no token of this daemon",
            hint=f"a worker sends what is in its {TOKEN_VARIABLE}, unchanged",
        )
    named, number = RunId(found["run"]), int(found["attempt"])
    run = runs.get(named)
    if run is None and named in aside:
        raise Unavailable(
            f"run {named} is set aside: {aside[named]}",
            hint="go on with the work and call again later; its user is told by subagents doctor",
            details={"runId": named},
        )
    if run is None or not _is_issued(run, number, digest(token)):
        reason = "the token is unknown, or its run is over"
    elif number < len(run.attempts):
        reason = (
            f"the token belongs to attempt {number} of run {run.id};"
            f" attempt {len(run.attempts)} is under way"
        )
    elif not may_call(run, number):
        reason = f"attempt {number} of run {run.id} is over"
    else:
        return Identity(run.id, number, run.attempt.session.key)
    raise Unauthorized(reason, hint=_HINT, details={"runId": named})


def _is_issued(run: Run, number: int, presented: str) -> bool:
    if number > len(run.attempts):
        return False
    known = run.attempts[number - 1].token_hashes
    return any(hmac.compare_digest(presented, each) for each in known)
