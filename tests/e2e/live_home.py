"""A real daemon, as its own process, in a temporary home: started, killed -9, started again.

Every process that belongs to one test carries a mark of that test in its environment: what is
alive is found by it, and so is what a failed test left behind.
"""

import contextlib
import itertools
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from tests.live_processes import carrying
from tests.store.row_place import RowPlace

from subagents.client.client import Client
from subagents.config.paths import Paths
from subagents.domain.lifecycle.reduce import reduce
from subagents.domain.run.events import (
    AnnouncementConsumed,
    AttemptStarted,
    Event,
    SlotGranted,
    decode_event,
)
from subagents.domain.run.run import Run
from subagents.errors import DaemonUnreachable
from subagents.ports import OutboxEntry, RunFilter, Store
from subagents.runtimes.process import cgroups
from subagents.runtimes.process.processes import look, scan
from subagents.store.sqlite.sqlite_store import SqliteStore


class SharedPlace(RowPlace, Protocol):
    """A database that `daemon.store` can name."""

    @property
    def url(self) -> str: ...


MARK: Final = "E2E_MARK"
START_S: Final = 40.0
BOUND_S: Final = 90.0
"""For what takes a second or two here: a machine may be slow, and busy with other tests."""
POLL_S: Final = 0.02
LATEST_CHARS: Final = 4_000
"""Of what a daemon said, where a test fails."""
TOLD_BYTES: Final = 2_000
"""Of each file of a run that did not end."""

AGENTS: Final = """
[agents.main]
subagents.allow_agents = ["*"]

[agents.sh]
runtime = "command"
command = ["sh", "-c", "{{task}}"]
grace_seconds = {grace}
env = {{ E2E_MARK = "{mark}", MARKS = "{marks}" }}
subagents.allow_agents = ["*"]

[agents.quick]
runtime = "scripted"
script = [{{ result = "done" }}]
"""
DEFAULTS: Final = """
[agents.defaults.subagents]
max_children_per_agent = 1000
max_concurrent = 64
max_spawn_depth = 3
"""

Document = dict[str, Any]
T = TypeVar("T")


class LiveHome:
    """One state directory and the daemon that serves it now, if any."""

    def __init__(
        self,
        root: Path,
        *,
        config: str,
        grace_s: float,
        env: Mapping[str, str],
        descriptors: int | None,
        module: str = "subagents",
        place: SharedPlace | None = None,
    ) -> None:
        self.root = root
        self._place = place
        self.work = root / "work"
        self.work.mkdir(parents=True)
        self.marks = root / "marks"
        self.mark = uuid.uuid4().hex
        self.paths = Paths.resolve({"SUBAGENTS_HOME": str(root / "home")})
        self.paths.config_file.parent.mkdir(parents=True)
        agents = AGENTS.format(mark=self.mark, marks=self.marks, grace=grace_s)
        self.paths.config_file.write_text(config + agents)
        self._env = {
            "PATH": os.environ["PATH"],
            "HOME": str(root),
            "SUBAGENTS_HOME": str(root / "home"),
            MARK: self.mark,
            **({} if place is None else {"SUBAGENTS_DAEMON__STORE": place.url}),
            **env,
        }
        program = [sys.executable, "-m", module, "serve", "--background-child"]
        limit = (
            [] if descriptors is None else ["sh", "-c", f'ulimit -n {descriptors}; exec "$0" "$@"']
        )
        self._argv = [*limit, *program]
        self._daemon: subprocess.Popen[bytes] | None = None
        self._others_pid: int | None = None
        """Of a daemon that a client started when it found none; ours gave way to it."""
        self._clients: list[Client] = []
        self.reader = uuid.uuid4().hex

    # -- the daemon --------------------------------------------------------------------------

    @property
    def pid(self) -> int:
        assert self._daemon is not None
        return self._others_pid or self._daemon.pid

    def start(self) -> None:
        """Start the daemon and wait until it answers."""
        self._daemon = self.launch()
        due = time.monotonic() + START_S
        while not self.is_up():
            is_there = self._daemon.poll() is None or "is running already" in self.stderr()
            assert is_there, self.stderr()
            assert time.monotonic() < due, "the daemon did not answer in time"
            time.sleep(POLL_S)
        try:
            serving = int(self.get("/version")["pid"])
        except DaemonUnreachable as error:
            raise AssertionError(
                f"it answered once: {error}\n{self._daemon.pid} ended: {self._daemon.poll()}\n"
                f"{self.stderr()[-LATEST_CHARS:]}\n{self.log()[-LATEST_CHARS:]}"
            ) from error
        if serving != self._daemon.pid:
            self._others_pid = serving
            self._daemon.wait(BOUND_S)

    def launch(self) -> "subprocess.Popen[bytes]":
        """A daemon process, without waiting for anything."""
        with (self.root / "stderr").open("ab") as stderr:
            return subprocess.Popen(
                self._argv,
                stdin=subprocess.DEVNULL,
                stdout=stderr,
                stderr=stderr,
                env=self._env,
                cwd="/",
                start_new_session=True,
            )

    def stderr(self) -> str:
        with contextlib.suppress(FileNotFoundError):
            return (self.root / "stderr").read_text(errors="replace")
        return ""

    def log(self) -> str:
        return self.paths.log_file.read_text(errors="replace")

    def is_up(self) -> bool:
        with Client(self.paths.socket, timeout_s=5) as client:
            try:
                client.get("/healthz")
            except DaemonUnreachable:
                return False
            return True

    def kill(self) -> None:
        """kill -9; returns when the process is gone."""
        assert self._daemon is not None
        self._daemon.kill()
        self._daemon.wait(BOUND_S)
        self._end_other(signal.SIGKILL)
        self._daemon = None
        self.close_clients()

    def _end_other(self, number: signal.Signals) -> None:
        pid, self._others_pid = self._others_pid, None
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
            until(lambda: look(pid) is None, what=f"the end of the daemon {pid}")

    def stop(self) -> None:
        """Stop in the orderly way; workers continue."""
        if self._daemon is None:
            return
        self._daemon.terminate()
        try:
            status = self._daemon.wait(BOUND_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        gave_way = self._others_pid is not None
        self._end_other(signal.SIGTERM)
        self._daemon = None
        self.close_clients()
        assert status == 0 or gave_way, self.stderr()

    def restart_after_kill(self) -> None:
        self.kill()
        self.start()

    def close_clients(self) -> None:
        while self._clients:
            self._clients.pop().close()

    def clean_up(self) -> None:
        """End the daemon and everything that carries the mark of this test."""
        self.close_clients()
        if self._daemon is not None:
            self.kill()
        due = time.monotonic() + BOUND_S
        while (left := self.marked()) and time.monotonic() < due:
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(POLL_S)
        for _, pid in cgroups.left_behind(cgroups.seen(str(self.paths.attempts_dir)), ()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if self.paths.socket.parent != self.paths.runtime_dir:
            self.paths.socket.unlink(missing_ok=True)
            self.paths.supervisor_socket.unlink(missing_ok=True)
            with contextlib.suppress(FileNotFoundError):
                self.paths.socket.parent.rmdir()

    # -- calls -------------------------------------------------------------------------------

    def client(self, *, session: str = "agent:main:main", reader: str | None = None) -> Client:
        client = Client(self.paths.socket, session=session, reader=reader or self.reader)
        self._clients.append(client)
        return client

    def get(self, path: str, **query: str | int) -> Document:
        with Client(self.paths.socket, reader=self.reader) as client:
            return client.get(path, query)

    def post(self, path: str, body: object = None, *, timeout_s: float = 60) -> Document:
        with Client(self.paths.socket, reader=self.reader) as client:
            return client.post(path, body, timeout_s=timeout_s)

    def spawn(self, task: str, *, agent: str = "sh", **spec: object) -> str:
        """The id of a new run."""
        return str(self.post("/v1/runs", self.spawn_body(task, agent=agent, **spec))["runId"])

    def spawn_body(self, task: str, *, agent: str = "sh", **spec: object) -> Document:
        return {"spec": {"task": task, "agentId": agent, **spec}, "cwd": str(self.work)}

    def wait(self, *run_ids: str, timeout_s: float = 60, until: str = "all") -> Document:
        body = {"runIds": list(run_ids), "until": until, "timeoutSeconds": timeout_s}
        # Longer than the wait itself: on a busy machine its answer comes late, and says more.
        return self.post("/v1/wait", body, timeout_s=timeout_s + BOUND_S)

    def finish(self, *run_ids: str, timeout_s: float = 60) -> list[Document]:
        """Wait for all of them, consume their announcements, and return their items by order."""
        answered = self.wait(*run_ids, timeout_s=timeout_s)
        assert not answered["pending"], "\n".join(
            self.told(each["runId"]) for each in answered["pending"]
        )
        assert not answered["errors"], answered["errors"]
        self.post("/v1/inbox/ack", {"messageIds": answered["messages"]})
        found = {item["runId"]: item for item in answered["completed"]}
        return [found[run_id] for run_id in run_ids]

    def told(self, run_id: str) -> str:
        """What there is to know of a run, for whoever reads of a failure: its row and its files."""
        told = [json.dumps(self.row(run_id))]
        place = self.paths.attempts_dir / run_id
        for path in sorted(each for each in place.rglob("*") if each.is_file()):
            tail = path.read_bytes()[-TOLD_BYTES:].decode(errors="replace")
            told.append(f"-- {path.relative_to(place)}\n{tail}")
        return "\n".join(told)

    def row(self, run_id: str) -> Document:
        return self.get(f"/v1/runs/{run_id}/status")

    def show(self, run_id: str) -> Document:
        return self.get(f"/v1/runs/{run_id}")

    def until_phase(self, run_id: str, *phases: str, within_s: float = BOUND_S) -> Document:
        return until(
            lambda: row if (row := self.row(run_id))["phase"] in phases else None,
            what=f"{run_id} in {phases}",
            within_s=within_s,
        )

    # -- processes ---------------------------------------------------------------------------

    def marked(self) -> list[int]:
        """Live processes of this test, the daemon not among them."""
        daemon = None if self._daemon is None else self.pid
        # A daemon that a command of the test started shows nothing of its environment but its home.
        found = {
            *carrying(MARK, self.mark),
            *carrying("SUBAGENTS_HOME", self._env["SUBAGENTS_HOME"]),
        }
        return sorted(found - {daemon, os.getpid()})

    def of_run(self, run_id: str) -> list[int]:
        """Live processes of a run, its shim among them."""
        return [
            each.pid
            for each in scan()
            if each.marker is not None and each.marker.attempt_id.startswith(f"{run_id}#")
        ]

    def worker_pid(self, run_id: str) -> int:
        """The pid of the first attempt's worker, from the attempt's own record of it."""

        def look() -> int | None:
            try:
                records = self.attempt_file(run_id, "pid").read_text().splitlines()
            except FileNotFoundError:
                return None
            return next((int(r.split()[1]) for r in records if r.startswith("worker ")), None)

        return until(look, what=f"the worker of {run_id}")

    def token_of(self, run_id: str, number: int = 1) -> str:
        """What a live worker carries: the only place where its token is."""

        def look() -> str | None:
            for each in scan():
                marker = each.marker
                if marker is not None and marker.attempt_id == f"{run_id}#{number}":
                    token = variable_of(each.pid, "SUBAGENTS_TOKEN")
                    if token:
                        return token
            return None

        return until(look, what=f"the token of {run_id}#{number}")

    def as_worker(self, run_id: str, number: int = 1) -> dict[str, str]:
        """The headers of a live worker."""
        return {"Authorization": f"Bearer {self.token_of(run_id, number)}"}

    def kill_run(self, run_id: str) -> None:
        """kill -9 of the shim, then of all else: nobody is left who could record the exit."""
        worker = self.worker_pid(run_id)
        shim = next(each.parent for each in scan() if each.pid == worker)

        def kill_rest() -> bool:
            left = self.of_run(run_id)
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return not left

        os.kill(shim, signal.SIGKILL)
        until(kill_rest, what=f"no process of {run_id} left")

    # -- what is on disk ---------------------------------------------------------------------

    def attempt_file(self, run_id: str, name: str, number: int = 1) -> Path:
        return self.paths.attempts_dir / run_id / str(number) / name

    def output(self, run_id: str, number: int = 1) -> str:
        """What the attempt wrote so far; deleted when it ended and all of it is in the log."""
        with contextlib.suppress(FileNotFoundError):
            return self.attempt_file(run_id, "out", number).read_text()
        return ""

    def read(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Committed rows, from outside the daemon."""
        if self._place is not None:
            return self._place.asked(sql, *parameters)
        uri = f"file:{self.paths.database}?mode=ro"
        with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=5)) as connection:
            return connection.execute(sql, parameters).fetchall()

    def journal(self, run_id: str) -> list[Event]:
        found = self.read("SELECT data FROM journal WHERE run_id = ? ORDER BY seq", (run_id,))
        return [decode_event(data) for (data,) in found]

    def events(self, run_id: str, kind: type[T]) -> list[T]:
        return [event for event in self.journal(run_id) if isinstance(event, kind)]

    @contextlib.contextmanager
    def reading(self) -> Iterator[Store]:
        """What the daemon committed, and nothing is written."""
        database = self.paths.database
        store = SqliteStore(database) if self._place is None else self._place.store()
        store.open_readonly()
        with contextlib.closing(store):
            yield store

    def stored(self) -> dict[str, Run]:
        with self.reading() as store:
            return {run.id: run for run in store.runs(RunFilter(archived=True, limit=1_000_000))}

    def effects_left(self) -> Sequence[OutboxEntry]:
        """Effects that are not known to be done."""
        with self.reading() as store:
            return store.load_outbox()

    def marks_written(self) -> list[str]:
        """What workers appended with ``MARK_ATTEMPT``."""
        with contextlib.suppress(FileNotFoundError):
            return self.marks.read_text().split()
        return []


MARK_ATTEMPT: Final = 'echo "$SUBAGENTS_ATTEMPT" >> "$MARKS"'
"""Each attempt writes its id once it really runs."""


@contextlib.contextmanager
def live_home(
    root: Path,
    *,
    config: str = DEFAULTS,
    grace_s: float = 1.0,
    env: Mapping[str, str] | None = None,
    started: bool = True,
    descriptors: int | None = None,
    module: str = "subagents",
    place: SharedPlace | None = None,
) -> Iterator[LiveHome]:
    """A home with its daemon for the length of the block; nothing of it is alive afterwards.

    Args:
        root: An empty directory of the test.
        config: Beginning of the user's ``subagents.toml``; the agents ``sh`` and ``quick`` follow.
        grace_s: Seconds between TERM and KILL.
        env: More variables of the daemon.
        started: Whether the daemon is started.
        descriptors: How many files the daemon may have open at most; None = as here.
        module: What Python runs as the daemon's program.
        place: Where its store is; None = a file of its own.
    """
    home = LiveHome(
        root / "e2e",
        config=config,
        grace_s=grace_s,
        env=env or {},
        descriptors=descriptors,
        module=module,
        place=place,
    )
    try:
        if started:
            home.start()
        yield home
    finally:
        home.clean_up()


def until(
    look: Callable[[], T | None], *, what: str, within_s: float = BOUND_S, pause_s: float = POLL_S
) -> T:
    """The first thing ``look`` finds; fails when it finds nothing in time."""
    due = time.monotonic() + within_s
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < due, f"not within {within_s} s: {what}"
        time.sleep(pause_s)


def variable_of(pid: int, name: str) -> str | None:
    """One variable of a process's environment; None when it, or the process, is not there."""
    with contextlib.suppress(OSError):
        for each in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            if each.startswith(f"{name}=".encode()):
                return os.fsdecode(each.partition(b"=")[2])
    return None


UNTIL_GO = "until [ -e go ]; do sleep 0.05; done"
"""For a shell task: until the test makes this file in its directory."""


def lines(count: int, every_s: float = 0.02, *, held_at: int | None = None) -> str:
    """A shell task that writes ``count`` numbered lines; those from ``held_at`` on after a go."""
    hold = "" if held_at is None else f"[ $i -ne {held_at} ] || {UNTIL_GO};"
    return (
        f"{MARK_ATTEMPT}; i=0; while [ $i -lt {count} ]; do {hold} echo line $i; i=$((i+1));"
        f" sleep {every_s}; done"
    )


def numbered(count: int) -> str:
    return "\n".join(f"line {number}" for number in range(count))


# -- what must be true of every database, whatever happened --------------------------------------


class Audit(NamedTuple):
    """What the journal says of all runs together."""

    runs: Mapping[str, Run]
    consumed: Mapping[str, int]
    starts: Mapping[str, int]


def audit(home: LiveHome, run_ids: Iterable[str] | None = None) -> Audit:
    """Check every run on disk against its journal, and that nothing was said or done twice."""
    stored = home.stored()
    for run_id, run in stored.items():
        # A daemon may have committed more since the run was read.
        folded = fold(itertools.islice(home.journal(run_id), run.seq))
        assert folded == run, f"fold(journal) of {run_id} is not the stored run"
    wanted = set(stored if run_ids is None else run_ids)
    assert wanted <= set(stored), f"lost: {wanted - set(stored)}"
    announced = dict(
        home.read("SELECT run_id, count(*) FROM inbox WHERE kind = 'announcement' GROUP BY run_id")
    )
    consumed, starts = {}, {}
    for run_id in wanted:
        run = stored[run_id]
        consumed[run_id] = len(home.events(run_id, AnnouncementConsumed))
        starts[run_id] = len(home.events(run_id, AttemptStarted))
        assert announced.get(run_id, 0) == (1 if run.is_settled else 0)
        assert starts[run_id] <= len(home.events(run_id, SlotGranted))
    assert max(announced.values(), default=0) <= 1
    return Audit({run_id: stored[run_id] for run_id in wanted}, consumed, starts)


def fold(journal: Iterable[Event]) -> Run | None:
    run: Run | None = None
    for event in journal:
        run = reduce(run, event).run
    return run
