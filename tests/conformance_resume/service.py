"""The service under trial, from outside: daemons in temporary homes, reached by their socket.

Nothing of the product is imported: whatever `subagents` is named is installed somewhere, is started
by its own command, and is killed with SIGKILL by the id of the process that was started here.
"""

import contextlib
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

Document = dict[str, Any]
T = TypeVar("T")

BOUND_S: Final = 120.0
"""For what takes a second or two: a machine may be slow, and busy with other things."""
POLL_S: Final = 0.05
TOLD: Final = "agent:told:main"
"""A session to which a courier delivers."""

CONFIG: Final = """
[agents.defaults.subagents]
max_children_per_agent = 5000
max_concurrent = 32
max_spawn_depth = 3

[agents.main]
subagents.allow_agents = ["*"]

[agents.told]
subagents.allow_agents = ["*"]

[agents.told.courier]
command = ["sh", "-c", {deliver}, {ledger}, "{{runId}}"]

[agents.sh]
runtime = "command"
command = ["sh", "-c", "{{task}}"]
grace_seconds = 1
env = {{ LEDGER = {ledger} }}
subagents.allow_agents = ["*"]

[agents.talker]
runtime = "acp"
env = {{ LEDGER = {ledger}, TALKS = {talks} }}

[agents.talker.runtime_options]
command = [{python}, {talker}]
resumes = true
"""
DELIVER: Final = 'echo "deliver $SUBAGENTS_DELIVERY_ID $1" >> "$0"; sleep 0.4'
"""A kill may come when it was told and has not ended."""


class Unreachable(Exception):
    """Nobody answered, or said to ask again: whether the call was taken is unknown."""


class Refused(Exception):
    """The call was answered, with an error that stays."""


class _Line(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__("x", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Node:
    """One home and the daemon that serves it now, if any.

    Args:
        program: The command `subagents`, absolute.
        root: A new directory, with a short path: a socket's is at most 107 bytes long.
        ledger: Where workers and couriers write down what they do, outside of the service.
        config: What stands in its configuration besides ``CONFIG``.
    """

    def __init__(
        self,
        program: Path,
        root: Path,
        ledger: Path,
        config: str = "",
    ) -> None:
        self.root, self.program = root, program
        self.work = root / "work"
        self.work.mkdir(parents=True, exist_ok=True)
        # A worker finds this `subagents` by its name, wherever the command is installed.
        self.env = {
            "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(root),
            "SUBAGENTS_HOME": str(root / "home"),
        }
        self._daemon: subprocess.Popen[bytes] | None = None
        self._others: int | None = None
        """A daemon that a command of ours started when it found none; ours gave way to it."""
        paths = json.loads(self.command("config", "--paths", "--json"))
        self.socket, self.database = (Path(paths[each]["path"]) for each in ("socket", "database"))
        texts = {
            "deliver": DELIVER,
            "ledger": str(ledger),
            "talks": str(ledger.parent / "talks"),
            "python": sys.executable,
            "talker": str(Path(__file__).with_name("talker.py")),
        }
        quoted = {name: json.dumps(text) for name, text in texts.items()}
        file = Path(paths["config"]["path"])
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(CONFIG.format(**quoted) + config, "utf-8")
        file.chmod(0o600)  # there may be a secret in it

    def command(self, *words: str) -> str:
        """What a command prints.

        Raises:
            Refused: It failed.
        """
        done = subprocess.run(
            [self.program, *words],
            env=self.env,
            cwd=self.work,
            capture_output=True,
            text=True,
            check=False,
            timeout=BOUND_S,
            stdin=subprocess.DEVNULL,
        )
        if done.returncode:
            raise Refused(f"subagents {' '.join(words)}: {done.stdout}{done.stderr}")
        return done.stdout.strip()

    # -- life --------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the daemon and wait until it answers."""
        with (self.root / "stderr").open("ab") as stderr:
            self._daemon = subprocess.Popen(
                [self.program, "serve"],
                env=self.env,
                cwd=self.work,
                stdin=subprocess.DEVNULL,
                stdout=stderr,
                stderr=stderr,
                start_new_session=True,
            )
        pid = until(self._serving, what=f"a daemon that answers in {self.root}")
        self._others = None if pid == self._daemon.pid else pid

    def _serving(self) -> int | None:
        with contextlib.suppress(Unreachable):
            return int(self.call("GET", "/version")["pid"])
        return None

    def kill(self) -> None:
        """SIGKILL of the daemon alone; its workers go on."""
        if self._daemon is not None:
            if self._others is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self._others, signal.SIGKILL)
            self._daemon.kill()
            self._daemon.wait(BOUND_S)
        self._daemon = self._others = None

    def kill_machine(self) -> None:
        """SIGKILL of all that it started, as when the power of its machine is gone."""
        # No part of it sees another one die, and acts on it.
        for pid in self.processes():
            _signal(pid, signal.SIGSTOP)
        self.kill()
        until(lambda: not [_signal(each, signal.SIGKILL) for each in self.processes()], what="end")

    def processes(self) -> list[int]:
        """Live processes that were started in this home, its daemon among them."""
        mark = f"{self.root}/home".encode()
        found = []
        for each in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if each.name.isdigit() and mark in (each / "environ").read_bytes():
                    found.append(int(each.name))
        return sorted(set(found) - {os.getpid()})

    # -- calls -------------------------------------------------------------------------------

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        session: str = "agent:main:main",
        reader: str = "suite",
        timeout_s: float = 30.0,
        **query: str | int,
    ) -> Document:
        """One call.

        Raises:
            Unreachable: Nobody answered, or the answer says that the same call can succeed later.
            Refused: It is refused for good.
        """
        headers = {
            "Content-Type": "application/json",
            "X-Subagents-Session": session,
            "X-Subagents-Reader": reader,
        }
        target = f"{path}?{urlencode(query)}" if query else path
        data = None if body is None else json.dumps(body).encode()
        line = _Line(str(self.socket), timeout_s)
        try:
            line.request(method, target, data, headers)
            answer = line.getresponse()
            status, content = answer.status, answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(f"{method} {path}: {error!r}") from error
        finally:
            line.close()
        try:
            found: Document = json.loads(content)
        except ValueError as error:
            raise Unreachable(f"{method} {path}: half an answer") from error
        if status >= 400:
            is_unknown = found.get("retryable") or found.get("code") == "outcome_unknown"
            error_type = Unreachable if is_unknown else Refused
            raise error_type(f"{method} {path}: {status} {content!r}")
        return found


class Service:
    """One machine, or several nodes of a cluster; calls go to any of them.

    Args:
        nodes: Started.
        root: A directory for what is not a home.
        chance: Draws the nodes that are killed and called, and the instants.
    """

    def __init__(self, nodes: Sequence[Node], root: Path, chance: random.Random) -> None:
        self.nodes, self.root, self.chance, self.kills = nodes, root, chance, 0
        self.ledger, self._read = root / "ledger", 0
        self.session = ""
        self.begin("main")

    def begin(self, name: str) -> None:
        """Another trial: what others did, killed and are told is none of it."""
        self.session, self.kills = f"agent:main:{name}", 0
        with contextlib.suppress(FileNotFoundError):
            self._read = self.ledger.stat().st_size

    @property
    def is_cluster(self) -> bool:
        return len(self.nodes) > 1

    @property
    def cwd(self) -> str:
        return str(self.nodes[0].work)

    def strike(self, within_s: float, *, noted: list[float] | None = None) -> None:
        """Kill a drawn daemon at a drawn instant within so many seconds, and start it again.

        Args:
            within_s: From now.
            noted: Gets the instant.
        """
        time.sleep(self.chance.uniform(0.0, within_s))
        node = self.chance.choice(self.nodes)
        if noted is not None:
            noted.append(time.monotonic())
        node.kill()
        self.kills += 1
        node.start()

    def strike_machine(self, within_s: float) -> None:
        """The same of a node with all of its workers; the others take over before it is back."""
        time.sleep(self.chance.uniform(0.0, within_s))
        node = self.chance.choice(self.nodes)
        node.kill_machine()
        self.kills += 1
        others = [each for each in self.nodes if each is not node]

        def is_taken_over() -> bool:
            with contextlib.suppress(Unreachable):
                rows = self.chance.choice(others).call("GET", "/v1/cluster")["nodes"]
                return not any(row["partitions"] for row in rows if row["name"] == node.root.name)
            return False

        until(is_taken_over, what=f"the take-over of what {node.root.name} decided about")
        node.start()

    def once(self, method: str, path: str, body: object = None, **more: Any) -> Document:
        """One call to a drawn node, as ``Node.call``."""
        more.setdefault("session", self.session)
        return random.choice(self.nodes).call(method, path, body, **more)  # noqa: S311 - no secret

    def ask(self, method: str, path: str, body: object = None, **more: Any) -> Document:
        """A call that may be repeated, until somebody answers it."""

        def answer() -> Document | None:
            with contextlib.suppress(Unreachable):
                return self.once(method, path, body, **more)
            return None

        return until(answer, what=f"an answer to {method} {path}")

    def spawn(self, task: str, *, key: str, session: str | None = None, **spec: object) -> str:
        """The id of the run that stands for a key, however often that must be asked."""
        given = {"task": task, "agentId": "sh", "idempotencyKey": key, **spec}
        body = {"spec": given, "cwd": self.cwd}
        of = session or self.session
        return str(self.ask("POST", "/v1/runs", body, session=of)["runId"])

    def finish(self, *run_ids: str) -> list[Document]:
        """The runs, when all of them are over, and what is to be delivered was."""

        return [self._until(each, "completed", "completed_giveup") for each in run_ids]

    def _until(self, run_id: str, *phases: str) -> Document:
        def look() -> Document | None:
            found = self.ask("GET", f"/v1/runs/{run_id}")
            return found if found["phase"] in phases or (not phases and found["outcome"]) else None

        return until(look, what=f"the end of {run_id}")

    def ended(self, *run_ids: str) -> None:
        """Return when all of them have an outcome, delivered or not."""
        for each in run_ids:
            self._until(each)

    def journal(self, run_id: str) -> list[list[Any]]:
        """Every event of a run: number, name, key, fields, and the phase after it."""
        found: list[list[Any]] = []
        after: int | None = 0
        while after is not None:
            page = self.ask("GET", f"/v1/runs/{run_id}/timeline", afterSeq=after, limit=500)
            found += [
                [each[name] for name in ("seq", "type", "key", "data", "phase")]
                for each in page["events"]
            ]
            after = page["nextSeq"]
        return found

    def transcript(self, run_id: str) -> list[list[Any]]:
        """Every line of a run: number, kind and text."""
        found: list[list[Any]] = []
        while True:
            after = found[-1][0] if found else 0
            page = self.ask("GET", f"/v1/runs/{run_id}/log", afterSeq=after, limit=1000)["lines"]
            found += [[each["seq"], each["type"], each["text"]] for each in page]
            if not page:
                return found

    def wrote(self, word: str) -> list[list[str]]:
        """The lines of the ledger that begin with a word, without it."""
        with contextlib.suppress(FileNotFoundError):
            text = self.ledger.read_bytes()[self._read :].decode()
            lines = [each.split() for each in text.splitlines()]
            return [each[1:] for each in lines if each and each[0] == word]
        return []

    def clean_up(self) -> None:
        """End all that was started here."""
        for node in self.nodes:
            node.kill_machine()


def _signal(pid: int, number: signal.Signals) -> int:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
    return pid


def until(look: Callable[[], T | None], *, what: str, within_s: float = BOUND_S) -> T:
    """The first thing that ``look`` finds.

    Raises:
        TimeoutError: It finds nothing in time.
    """
    due = time.monotonic() + within_s
    while True:
        if found := look():
            return found
        if time.monotonic() > due:
            raise TimeoutError(f"not within {within_s:.0f} s: {what}")
        time.sleep(POLL_S)


@contextlib.contextmanager
def one_machine(program: Path, root: Path, chance: random.Random) -> Iterator[Service]:
    """A daemon in a home below ``root``; nothing of it is alive afterwards."""
    service = Service([Node(program, root / "n1", root / "ledger")], root, chance)
    try:
        service.nodes[0].start()
        yield service
    finally:
        service.clean_up()
