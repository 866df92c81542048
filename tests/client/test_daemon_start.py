"""One daemon is started for a home, and one that does not start is said why."""

import fcntl
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec.structs import replace
from tests.client.peer import Peer, http

from subagents.client import daemon_start
from subagents.client.daemon_start import _Starting, answers, ensure_daemon, holder, log_tail
from subagents.config import daemon_record
from subagents.config.daemon_record import DaemonRecord, own
from subagents.config.paths import Paths
from subagents.config.socket_path import digest
from subagents.errors import DaemonUnreachable


@pytest.mark.requirement("client:start")
def test_the_end_of_a_log_is_short_and_missing_ones_are_empty(tmp_path: Path) -> None:
    file = tmp_path / "log"
    assert log_tail(file) == ""
    file.write_bytes(b"x" * 10_000 + "\nlast é".encode())
    assert log_tail(file).endswith("\nlast é")
    assert len(log_tail(file)) <= 4096


@pytest.mark.requirement("client:start")
def test_a_home_that_cannot_be_written_is_said_to_be_the_reason(tmp_path: Path) -> None:
    paths = Paths.resolve({"SUBAGENTS_HOME": str(tmp_path)})
    paths.ensure()
    paths.log_file.mkdir()
    with pytest.raises(
        DaemonUnreachable, match=r"cannot be started: .*daemon\.log: Is a directory"
    ):
        ensure_daemon(paths, {})
    paths.log_file.rmdir()
    (paths.state_dir / "start.lock").unlink()
    (paths.state_dir / "start.lock").mkdir()
    with pytest.raises(DaemonUnreachable, match=r"cannot be started: .*start\.lock"):
        ensure_daemon(paths, {})


@pytest.mark.requirement("client:start")
def test_a_daemon_that_owns_the_home_but_is_slow_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = Paths.resolve({"SUBAGENTS_HOME": str(tmp_path)})
    paths.ensure()
    monkeypatch.setattr(daemon_start, "_start", lambda *_: Ended())
    with paths.lock_file.open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)

        def late() -> None:
            Ended.polled.wait(10)
            found.append(Peer(paths.socket, lambda _: http({"status": "ok"})))

        found: list[Peer] = []
        listening = threading.Thread(target=late, daemon=True)
        listening.start()
        assert ensure_daemon(paths, {})
        listening.join()
        found[0].close()


def home_with(tmp_path: Path, left: DaemonRecord) -> Paths:
    paths = Paths.resolve({"SUBAGENTS_HOME": str(tmp_path)})
    paths.ensure()
    paths.lock_file.write_bytes(daemon_record.written(left))
    return paths


RECORDS: dict[str, tuple[DaemonRecord, str]] = {
    "here": (own(), "holds"),
    "told to stop": (own(has_ended=True), "nobody"),
    "killed, its number used again": (replace(own(), start="1"), "nobody"),
    "killed, its number free": (replace(own(), pid=2**22 + 1), "nobody"),
    "before a reboot": (replace(own(), boot="0"), "nobody"),
    "in another container": (replace(own(), pid_namespace="pid:[1]", host="web"), "holds"),
    "on another machine": (replace(own(), boot="0", host="db2"), "holds"),
    "of a version before": (DaemonRecord(pid=4711), "holds"),
}


@pytest.mark.requirement("daemon:lock:names-one-process")
@pytest.mark.parametrize("name", RECORDS)
def test_who_holds_a_home_is_whom_its_lock_names_while_it_is_held(
    name: str, tmp_path: Path
) -> None:
    left, who = RECORDS[name]
    paths = home_with(tmp_path, left)
    assert holder(paths) is None
    with paths.lock_file.open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert holder(paths) == (left if who == "holds" else None)


@pytest.mark.requirement("client:start")
@pytest.mark.parametrize("name", [name for name, (_, who) in RECORDS.items() if who == "nobody"])
def test_a_look_for_a_daemon_that_is_gone_does_not_touch_its_lock(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = home_with(tmp_path, RECORDS[name][0])
    monkeypatch.setattr(daemon_start, "_is_owned", lambda _: pytest.fail("it tried the lock"))
    assert holder(paths) is None


HERE = replace(own(), machine="ba9876543210")
"""On a machine with an id, which containers have not."""
ELSEWHERE: dict[str, DaemonRecord] = {
    "over a network file system": replace(HERE, boot="0", host="db2"),
    "in a virtual machine of our image": replace(HERE, boot="0", machine="0123456789ab"),
    "in a container with a boot of its own": replace(
        HERE, boot="0", host="machine-1", pid_namespace="pid:[1]"
    ),
    "the host of this container": replace(HERE, pid_namespace="pid:[1]", host="laptop"),
    "a container beside this one": replace(HERE, pid=7, pid_namespace="pid:[2]", host="7f9c"),
    "a container with our host's name": replace(HERE, pid=7, pid_namespace="pid:[3]"),
}


@pytest.mark.requirement("client:start:elsewhere")
@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_daemon_elsewhere_that_no_socket_leads_to_is_not_waited_for(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = ELSEWHERE[name]
    paths = home_with(tmp_path, left)
    monkeypatch.setattr(daemon_record, "_machine", lambda: HERE.machine)
    monkeypatch.setattr(daemon_start, "ELSEWHERE_S", 0.0)
    monkeypatch.setattr(daemon_start, "START_POLL_S", None)
    monkeypatch.setattr(daemon_start, "_start", lambda *_: pytest.fail("it started another one"))
    with paths.lock_file.open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(DaemonUnreachable, match="is at work elsewhere") as caught:
            ensure_daemon(paths, {})
    assert caught.value.is_lasting
    assert left.words in caught.value.message
    assert caught.value.details["host"] == left.host


@pytest.mark.requirement("client:start:elsewhere")
def test_a_daemon_in_another_container_may_answer_in_a_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = home_with(tmp_path, ELSEWHERE["a container beside this one"])
    peers: list[Peer] = []

    def look(given: Paths) -> DaemonRecord | None:
        peers.append(Peer(paths.socket, lambda _: http({"status": "ok"})))
        return daemon_record.read(given.lock_file)

    monkeypatch.setattr(daemon_start, "holder", look)
    assert ensure_daemon(paths, {}) is False
    peers[0].close()


@pytest.mark.requirement("client:start")
def test_a_daemon_that_does_not_answer_in_time_is_said_to_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = home_with(tmp_path, own())
    monkeypatch.setattr(daemon_start, "START_TIMEOUT_S", -1.0)
    with paths.lock_file.open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(DaemonUnreachable, match=rf"\(pid {os.getpid()}\) holds this home"):
            ensure_daemon(paths, {})


@pytest.mark.requirement("daemon:socket:former")
def test_a_daemon_of_a_version_before_is_found_where_it_listened(
    short_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(short_path))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short_path / "rt"))
    for name in ("SUBAGENTS_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    paths = Paths.resolve(os.environ)
    paths.ensure()
    before = short_path / "rt" / "subagents" / digest(str(paths.state_dir)) / "subagents.sock"
    before.parent.mkdir(parents=True)
    paths.lock_file.write_bytes(b"4711".ljust(31) + b"\n")
    peer = Peer(before, lambda _: http({"status": "ok"}))
    assert ensure_daemon(paths) is False
    assert answers(paths.socket)
    peer.close()


class Ended(_Starting):
    """One that ended at once, as a second daemon does."""

    polled = threading.Event()

    def __init__(self) -> None:
        theirs, ours = os.pipe()
        os.close(theirs)
        super().__init__(ours)

    def has_ended(self) -> bool:
        self.polled.set()
        return super().has_ended()


@pytest.mark.requirement("client:start")
@pytest.mark.parametrize(
    ("given", "taken"),
    [
        (b"", {"BEFORE": "1"}),
        (b"\0", {}),
        (b"A=b=c\0LONG=" + b"x" * 100_000 + b"\0\0", {"A": "b=c", "LONG": "x" * 100_000}),
        (b"E=\0B=\xff\0\0", {"E": "", "B": "\udcff"}),
    ],
)
def test_a_daemon_takes_the_whole_environment_it_is_handed_and_keeps_its_own_without(
    given: bytes, taken: dict[str, str]
) -> None:
    assert taking_environment(given).result() == taken


@pytest.mark.requirement("client:start")
def test_a_daemon_whose_starter_was_killed_before_it_had_its_environment_does_not_start() -> None:
    assert taking_environment(b"A=b\0C=").refusal() == "whoever started this daemon was killed"


class Taken(NamedTuple):
    done: "subprocess.CompletedProcess[bytes]"

    def result(self) -> dict[str, str]:
        assert self.done.returncode == 0, self.done.stderr
        return dict(json.loads(self.done.stdout))

    def refusal(self) -> str:
        return self.done.stderr.decode().strip().splitlines()[-1].partition(": ")[2][:38]


def taking_environment(given: bytes) -> Taken:
    """What becomes of the environment of a process that is given these bytes."""
    look = (
        "import json, os, sys; sys.path[:0] = sys.argv[1:]; "
        "from subagents.client.daemon_start import take_environment; take_environment(); "
        "os.environ.pop('LC_CTYPE', None); print(json.dumps(dict(os.environ)))"
    )
    return Taken(
        subprocess.run(
            [sys.executable, "-c", look, *sys.path],
            input=given,
            capture_output=True,
            env={"BEFORE": "1"},
            timeout=60,
            check=False,
        )
    )
