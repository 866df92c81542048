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
from tests.client.peer import Peer, http

from subagents.client import daemon_start
from subagents.client.daemon_start import _Starting, ensure_daemon, log_tail
from subagents.config.paths import Paths
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
        threading.Thread(target=late, daemon=True).start()
        assert ensure_daemon(paths, {})
        found[0].close()


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
