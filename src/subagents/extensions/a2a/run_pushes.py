"""Posts the state of runs to the addresses that clients named for them.

What is sent is the state as it is, not each step to it: a receiver that was down hears of the
newest. With each address a file keeps the state that its receiver knows, so that the next daemon
goes on where this one was acknowledged; after a crash the same state may be sent again.

An address is the client's, and what is sent to it comes from this machine: only what begins with
one of the user's ``a2a.push_urls`` is allowed, and redirects are not followed.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, urlsplit

import msgspec

from subagents.api.calls import extras
from subagents.api.calls.services import Services
from subagents.domain.run.run import Run
from subagents.domain.run.values import RunId, Value, replace
from subagents.durable_files import replace_file
from subagents.extensions.a2a.a2a_settings import A2aSettings
from subagents.followers.follower_host import FollowerHost
from subagents.followers.journal_export import (
    Export,
    ReceiverRefused,
    ReceiverUnavailable,
)
from subagents.ports import Audience, Batch, Store, readable
from subagents.version import __version__

if TYPE_CHECKING:
    import httpx2

log = logging.getLogger(__name__)

PACKAGE: Final = "a2a"
"""The name of this extension, of its extra and of the SDK's package."""
TASKS: Final = "subagents.extensions.a2a.a2a_tasks"

TIMEOUT_S: Final = 10.0
GIVE_UP_S: Final = 3600.0
"""A receiver that took nothing for so long is not asked again before the run's next state."""
AGAIN: Final = frozenset({408, 409, 425, 429})
_PORTS: Final = {"http": 80, "https": 443}


class PushTarget(Value, frozen=True, rename="camel"):
    """One address that a client named for one run."""

    id: str
    """The client's name for it, unique within the run."""
    url: str
    token: str = ""
    """Handed back with each notification, so that the receiver knows whose it is."""
    authorization: str = ""
    """The Authorization header; empty = none."""
    told: str = ""
    """The state that the receiver knows."""


_Kept = dict[str, tuple[PushTarget, ...]]


class RunPushes(Export):
    """Keeps the addresses and sends to them.

    Args:
        urls: What an address must begin with: the same scheme, host and port, and a path within.
        store: Where runs are read.
        file: Keeps the addresses.
        state_of: The name of a run's state and the body that tells it; it may be slow.
        now_s: A clock that never goes back.
    """

    audience = Audience.PROGRAMS

    def __init__(
        self,
        *,
        urls: Sequence[str],
        store: Store,
        file: Path,
        state_of: Callable[[Run], tuple[str, bytes]],
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(what="states of tasks", endpoint=", ".join(urls), store=store)
        self._allowed = tuple(map(urlsplit, urls))
        self._file = file
        self._state_of = state_of
        self._now_s = now_s
        self._lock = threading.Lock()
        self._kept: _Kept = {}
        self._failing: dict[tuple[str, str, str], float] = {}
        """When a receiver first did not take a state, by run, target and state."""
        self._client: httpx2.Client | None = None

    # -- the addresses -----------------------------------------------------------------------

    def allows(self, url: str) -> bool:
        """Whether the user's configuration lets anything be sent there."""
        # `urlsplit` drops what others take for a part of the host, or refuse.
        if not (url.isascii() and url.isprintable()) or " " in url:
            return False
        try:
            given = urlsplit(url)
            return any(_is_within(given, each) for each in self._allowed)
        except ValueError:
            return False

    def put(self, run_id: RunId, target: PushTarget) -> None:
        """Keep it, durably, in the place of one with the same id; a repetition changes nothing.

        Raises:
            OSError: It could not be written, and is not kept.
        """
        with self._lock:
            others = [each for each in self._kept.get(run_id, ()) if each.id != target.id]
            self._keep(run_id, (*others, target))
        self._wake.set()

    def of(self, run_id: RunId) -> Sequence[PushTarget]:
        """Those of a run; none once it ended and was told."""
        return self._kept.get(run_id, ())

    def remove(self, run_id: RunId, target_id: str) -> None:
        """Send nothing more there; nothing when there is none such.

        Raises:
            OSError: It could not be written, and is still there.
        """
        with self._lock:
            self._keep(
                run_id, tuple(each for each in self._kept.get(run_id, ()) if each.id != target_id)
            )

    def _keep(self, run_id: str, targets: tuple[PushTarget, ...]) -> None:
        kept = {**self._kept, run_id: targets}
        if not targets:
            del kept[run_id]
        replace_file(self._file, msgspec.json.encode(kept))
        self._kept = kept

    # -- sending -----------------------------------------------------------------------------

    def start(self) -> None:
        """Read the addresses, and send what their receivers do not know yet."""
        try:
            self._kept = msgspec.json.decode(self._file.read_bytes(), type=_Kept)
        except FileNotFoundError:
            pass
        except msgspec.DecodeError as error:
            log.warning("%s cannot be read, nobody in it is told any more: %s", self._file, error)
        super().start()

    def _concerns(self, batch: Batch) -> bool:
        return not self._kept.keys().isdisjoint(batch.runs)

    def catch_up(self) -> None:
        """Tell each receiver the state of its run, where it knows another one.

        Raises:
            ReceiverUnavailable: One did not take it; the others were told.
        """
        unavailable: ReceiverUnavailable | None = None
        for run_id in tuple(self._kept):
            run = readable(self._store, RunId(run_id))
            name, body = ("", b"") if run is None else self._state_of(run)
            for target in self._kept.get(run_id, ()):
                if run is None or target.told == name:
                    continue
                try:
                    self._tell(run_id, target, name, body)
                except ReceiverUnavailable as error:
                    unavailable = error
                    continue
                self._told(run_id, target, name)
            told = all(each.told == name for each in self._kept.get(run_id, ()))
            if run is None or (run.is_settled and told):
                with self._lock:
                    self._keep(run_id, ())
        if unavailable is not None:
            raise unavailable
        self._taken()

    def _tell(self, run_id: str, target: PushTarget, name: str, body: bytes) -> None:
        """Send it, or give it up.

        Raises:
            ReceiverUnavailable: Not yet given up.
        """
        failing = (run_id, target.id, name)
        try:
            self._post(target, body)
        except ReceiverUnavailable as error:
            since_s = self._failing.setdefault(failing, self._now_s())
            if self._now_s() - since_s < GIVE_UP_S:
                raise
            self._never_told(run_id, target, f"given up: {error}")
        except ReceiverRefused as error:
            self._never_told(run_id, target, str(error))
        except Exception as error:
            # Whatever is wrong with one address, the others' receivers are told.
            log.exception("%s could not be told the state of %s", _origin(target.url), run_id)
            self._never_told(run_id, target, repr(error))
        else:
            self._sent()
        self._failing.pop(failing, None)

    def _never_told(self, run_id: str, target: PushTarget, why: str) -> None:
        self._refused(f"{_origin(target.url)} was not told the state of {run_id}: {why}")

    def _told(self, run_id: str, target: PushTarget, name: str) -> None:
        with self._lock:
            kept = self._kept.get(run_id, ())
            # One that was removed or put again meanwhile stays as it is.
            self._keep(
                run_id,
                tuple(replace(each, told=name) if each is target else each for each in kept),
            )

    def _post(self, target: PushTarget, body: bytes) -> None:
        import httpx2  # noqa: PLC0415  100 ms, for those who are pushed to

        if self._client is None:
            self._client = httpx2.Client(
                follow_redirects=False,
                timeout=TIMEOUT_S,
                headers={"User-Agent": f"subagents/{__version__}"},
            )
        headers: Mapping[str, str] = {
            "Content-Type": "application/json",
            **({"X-A2A-Notification-Token": target.token} if target.token else {}),
            **({"Authorization": target.authorization} if target.authorization else {}),
        }
        try:
            answer = self._client.post(target.url, content=body, headers=headers)
        except httpx2.HTTPError as error:
            raise ReceiverUnavailable(f"{_origin(target.url)}: {error!r}") from error
        if answer.is_success:
            return
        said = f"{_origin(target.url)} answered {answer.status_code}"
        if answer.status_code in AGAIN or answer.is_server_error:
            raise ReceiverUnavailable(said)
        raise ReceiverRefused(said)

    def _close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()


def _origin(url: str) -> str:
    """Of an address what may be logged: no path, which can hold a secret."""
    try:
        split = urlsplit(url)
    except ValueError:
        return "an address that is none"
    return f"{split.scheme}://{split.hostname}"


def _is_within(given: SplitResult, allowed: SplitResult) -> bool:
    """Whether an address begins with another one, part for part."""
    if given.username is not None or given.password is not None or given.fragment:
        return False
    places = [
        (each.scheme, each.hostname, each.port or _PORTS.get(each.scheme))
        for each in (given, allowed)
    ]
    # What a receiver may read as a step upwards is not within.
    parts = given.path.split("/")
    climbs = ".." in parts or "%2e" in given.path.lower() or "\\" in given.path
    below = allowed.path.rstrip("/") + "/"
    return places[0] == places[1] and not climbs and f"{given.path.rstrip('/')}/".startswith(below)


def followers(host: FollowerHost) -> list[RunPushes]:
    """See ``Extension.followers``; none where the user named no address that may be told."""
    urls = host.settings.table(A2aSettings).push_urls
    if not urls:
        return []

    def state_of(run: Run) -> tuple[str, bytes]:
        # With the SDK, which is an extra: only clients of it have something pushed.
        found: tuple[str, bytes] = extras.loaded(TASKS, extra=PACKAGE).pushed(run)
        return found

    made = RunPushes(
        urls=urls,
        store=host.store,
        file=host.paths.state_dir / "a2a-pushes.json",
        state_of=state_of,
    )
    return [made]


def pushes_in(services: Services) -> RunPushes | None:
    """Of that daemon; None = nothing may be pushed."""
    found = next(iter(services.followers.get(PACKAGE, ())), None)
    return found if isinstance(found, RunPushes) else None
