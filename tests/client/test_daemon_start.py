"""One daemon is started for a home, and one that does not start is said why."""

import fcntl
import threading
from pathlib import Path

import pytest
from tests.client.peer import Peer, http

from subagents.client import daemon_start
from subagents.client.daemon_start import ensure_daemon, log_tail
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


class Ended:
    """A process that ended at once, as a second daemon does."""

    polled = threading.Event()

    def poll(self) -> int:
        self.polled.set()
        return 1

    def wait(self) -> int:
        return 1
