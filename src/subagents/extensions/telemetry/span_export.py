"""Sends the spans of every run that ended, at least once (see ``journal_export``).

Each run that is over is sent with its whole tree position. What is sent twice has the same ids.

Why: docs/decisions/0022-spans-from-the-journal.md.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from subagents.config.settings import Settings
from subagents.domain.lifecycle.transitions import TRANSITIONS
from subagents.domain.run.events import Event
from subagents.domain.run.run import OVER, Phase, Run
from subagents.domain.run.values import RunId
from subagents.errors import ConfigError, StoreUnavailable, SubagentsError
from subagents.extensions.telemetry.telemetry_settings import Telemetry
from subagents.extensions.telemetry.trace_ids import lineage, traceparent
from subagents.followers.follower_host import FollowerHost
from subagents.followers.journal_export import JournalExport, ReceiverRefused
from subagents.installation import extra_command
from subagents.ports import Audience, Batch, Exporter, FeedEntry, Store, readable
from subagents.version import __version__

if TYPE_CHECKING:  # of few daemons
    from subagents.extensions.telemetry.spans import Span

log = logging.getLogger(__name__)

CURSOR_FILE: Final = "telemetry-cursor.json"
JOURNAL_PAGE: Final = 500
SPANS_AT_ONCE: Final = 512
"""How many spans one request has; receivers refuse bodies of a few megabytes."""

ENDS: Final[Mapping[Phase, frozenset[type]]] = {
    phase: frozenset(
        kind
        for (before, kind), after in TRANSITIONS.items()
        if phase in after and before not in OVER
    )
    for phase in OVER
}
"""Which events can have brought a run into the phase in which it is over."""


class Sender(Protocol):
    """Hands spans to the receiver. Blocking."""

    @property
    def endpoint(self) -> str:
        """Where to, for people."""
        ...

    def send(self, spans: "Sequence[Span]") -> None:
        """Return when the receiver has them; what it has under the same id it replaces.

        Raises:
            ReceiverUnavailable: Try again later.
            ReceiverRefused: Trying again is no use.
        """
        ...

    def close(self) -> None: ...


class SpanExport(JournalExport):
    """One sender and how far it has come.

    Args:
        store: Where runs and their journals are read.
        sender: Where they go.
        file: Holds the cursor; without it, export begins with what ends from now on.
        describe: The description of an agent by its id.
        content: Whether tasks and results are sent, too.
    """

    audience = Audience.TRACES

    def __init__(
        self,
        *,
        store: Store,
        sender: Sender,
        file: Path,
        describe: Callable[[str], str | None] = lambda _agent_id: None,
        content: bool = False,
    ) -> None:
        super().__init__(what="spans", endpoint=sender.endpoint, store=store, file=file)
        self._sender = sender
        self._describe = describe
        self._content = content

    def _concerns(self, batch: Batch) -> bool:
        return any(run.phase in OVER for run in batch.runs.values())

    def _send_page(self, page: Sequence[FeedEntry]) -> None:
        self._send_all(self._ended(page))

    def _close(self) -> None:
        self._sender.close()

    def _ended(self, page: Iterable[FeedEntry]) -> Iterator[Run]:
        """Each run of which the page holds the end."""
        seen: set[RunId] = set()
        kinds = frozenset().union(*ENDS.values())
        for each in page:
            entry = each.entry
            if entry.run_id in seen or type(entry.event) not in kinds:
                continue
            run = readable(self._store, entry.run_id)
            if run is not None and type(entry.event) in ENDS.get(run.phase, ()):
                seen.add(run.id)
                yield run

    def _send_all(self, runs: Iterable[Run]) -> None:
        waiting: list[Span] = []
        for run in runs:
            waiting += self._spans(run)
            while len(waiting) >= SPANS_AT_ONCE:
                self._send(waiting[:SPANS_AT_ONCE])
                del waiting[:SPANS_AT_ONCE]
        if waiting:
            self._send(waiting)

    def _spans(self, run: Run) -> "list[Span]":
        from subagents.extensions.telemetry.spans import spans_of  # noqa: PLC0415 - as above

        try:
            return spans_of(
                run,
                self._journal(run.id),
                lineage(run, partial(readable, self._store)),
                description=self._describe(run.resolved.agent_id),
                content=self._content,
            )
        except StoreUnavailable:
            raise
        except (SubagentsError, msgspec.ValidationError, KeyError, ValueError):
            # One run that cannot be exported must not keep back all others.
            log.exception("run %s has no spans", run.id)
            return []

    def _journal(self, run_id: RunId) -> Iterator[Event]:
        seq = 0
        while page := self._store.journal(run_id, after_seq=seq, limit=JOURNAL_PAGE):
            yield from (entry.event for entry in page)
            seq = page[-1].seq

    def _send(self, spans: "Sequence[Span]") -> None:
        try:
            self._sender.send(spans)
        except ReceiverRefused as error:
            why = f"{self._state.endpoint} refused {len(spans)} spans: {error}"
            self._refused(why, len(spans))
            return
        self._sent(len(spans))


class NoExport:
    """Without an endpoint: what ends now is never sent, also when there is an endpoint later."""

    audience = Audience.TRACES

    def __init__(self, file: Path) -> None:
        self._file = file

    @property
    def state(self) -> None:
        """Nothing is sent."""
        return

    def start(self) -> None:
        """Forget how far an earlier export came."""
        self._file.unlink(missing_ok=True)

    def on_commit(self, batch: Batch) -> None:
        """Nobody hears of it."""

    def stop(self) -> None:
        """There is nothing to stop."""


def followers(host: FollowerHost) -> list[Exporter]:
    """See ``Extension.followers``: what sends spans to the configured receiver, or nothing.

    Raises:
        ConfigError: There is a receiver, but not what is needed to send to it.
    """
    file = host.paths.state_dir / CURSOR_FILE
    telemetry = host.settings.table(Telemetry)
    if telemetry.otlp_endpoint is None:
        return [NoExport(file)]
    try:
        from subagents.extensions.telemetry.otlp import OtlpSender  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise ConfigError(
            f"telemetry.otlp_endpoint is set, but {error.name} is not installed",
            hint=f"{extra_command('otel')}, or remove telemetry.otlp_endpoint",
            details={"keys": ["telemetry.otlp_endpoint"]},
        ) from error

    def describe(agent_id: str) -> str | None:
        agent = host.settings_now().agents.get(agent_id)
        return None if agent is None else agent.description

    sender = OtlpSender(
        telemetry.otlp_endpoint,
        headers=telemetry.headers,
        service_name=telemetry.service_name,
        version=__version__,
    )
    found = SpanExport(
        store=host.store, sender=sender, file=file, describe=describe, content=telemetry.content
    )
    return [found]


def worker_env(
    run: Run, run_of: Callable[[RunId], Run | None], settings: Settings
) -> dict[str, str]:
    """See ``Extension.worker_env``: what makes a worker's own telemetry part of our trace.

    Nothing when we send none ourselves: its spans would lie in one that never comes.
    """
    if settings.table(Telemetry).otlp_endpoint is None:
        return {}
    root = lineage(run, run_of).root
    return {"TRACEPARENT": traceparent(root, run.id, len(run.attempts))}
