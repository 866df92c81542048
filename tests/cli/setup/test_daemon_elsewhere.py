"""``down`` where the daemon does not answer: only the very process is signalled."""

import fcntl
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from subagents.cli.main import main
from subagents.cli.setup import daemon_commands
from subagents.config import daemon_record
from subagents.config.daemon_record import DaemonRecord, own
from subagents.config.paths import Paths
from subagents.errors import EXIT_OK, EXIT_UNREACHABLE
from subagents.process_identity import start_of


class Place:
    """A home whose lock is held, and a process that has the number in its record."""

    def __init__(self, root: Path, innocent: "subprocess.Popen[bytes]") -> None:
        self.paths = Paths.resolve({"SUBAGENTS_HOME": str(root)})
        self.paths.ensure()
        self.innocent = innocent

    @property
    def record(self) -> DaemonRecord:
        return replace(own(), pid=self.innocent.pid, start=start_of(self.innocent.pid) or "")

    def leave(self, record: DaemonRecord) -> None:
        self.paths.lock_file.write_bytes(daemon_record.written(record))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.setenv("SUBAGENTS_HOME", str(tmp_path))
    monkeypatch.delenv("SUBAGENTS_SOCKET", raising=False)
    monkeypatch.setattr(daemon_commands, "SILENT_S", 0.0)
    # Containers have no id of their machine.
    monkeypatch.setattr(daemon_record, "_machine", lambda: "ba9876543210")
    with subprocess.Popen(["sleep", "600"]) as innocent:
        found = Place(tmp_path, innocent)
        with found.paths.lock_file.open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                yield found
            finally:
                innocent.kill()


ELSEWHERE: dict[str, tuple[dict[str, str], str]] = {
    "a container that is paused": (
        {"pid_namespace": "pid:[1]", "host": "web"},
        "in another container of this machine, web",
    ),
    "a container with our host's name": (
        {"pid_namespace": "pid:[1]"}, "in another container of this machine",
    ),
    "the host of this container": (
        {"pid_namespace": "pid:[4026531836]x", "host": "laptop"}, "another container",
    ),
    "a machine that shares the home": ({"boot": "0", "host": "db2"}, "on db2"),
    "a machine of our image": ({"boot": "0", "machine": "0123456789ab"}, "on "),
}  # fmt: skip


@pytest.mark.requirement("cli:down:one-process")
@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_daemon_elsewhere_is_said_to_be_there_and_its_number_here_is_not_signalled(
    name: str, place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    changed, where = ELSEWHERE[name]
    place.leave(replace(place.record, **changed))
    assert main(["down", "--yes"]) == EXIT_UNREACHABLE
    said = capsys.readouterr().err
    assert f"elsewhere (pid {place.innocent.pid} " in said
    assert where in said
    assert "nothing was signalled" in said
    assert place.innocent.poll() is None


GONE: dict[str, dict[str, object]] = {
    "a later process has its number": {"start": "1"},
    "it ran before a reboot": {"boot": "0"},
    "it was told to stop": {"has_ended": True},
    "it was told to stop before a reboot": {"has_ended": True, "boot": "0"},
    "nobody has its number": {"pid": 2**22 + 1},
}


@pytest.mark.requirement("cli:down:one-process")
@pytest.mark.parametrize("name", GONE)
def test_a_daemon_that_is_gone_is_not_taken_for_who_has_its_number_now(
    name: str, place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    place.leave(replace(place.record, **GONE[name]))
    assert main(["down", "--yes"]) == EXIT_OK
    assert capsys.readouterr().out == "No daemon is running.\n"
    assert place.innocent.poll() is None


@pytest.mark.requirement("cli:down:one-process")
def test_a_number_that_a_version_before_left_is_not_believed_but_told(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    pid = place.innocent.pid
    place.leave(DaemonRecord(pid=pid))
    assert main(["down", "--yes", "--json"]) == EXIT_UNREACHABLE
    said = msgspec.json.decode(capsys.readouterr().out)
    assert "nothing was signalled" in said["message"]
    assert said["hint"].endswith(f"kill {pid}")
    assert place.innocent.poll() is None


@pytest.mark.requirement("cli:down:one-process")
def test_the_very_process_is_stopped_also_where_it_is_held_still(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    place.innocent.send_signal(signal.SIGSTOP)
    place.leave(place.record)
    assert main(["down", "--yes"]) == EXIT_OK
    assert capsys.readouterr().out == f"The daemon (pid {place.innocent.pid}) stopped.\n"
    assert place.innocent.wait(60) == -signal.SIGTERM


@pytest.mark.requirement("cli:down:one-process")
def test_the_home_of_another_user_is_left_alone(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place.leave(place.record)
    monkeypatch.setattr("subagents.config.paths.os.getuid", lambda: 4711)
    assert main(["down", "--yes"]) == 2
    assert "belongs to another user" in capsys.readouterr().err
    assert place.innocent.poll() is None
