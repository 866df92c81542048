"""A lock's file says which process holds a home, and a number alone is never believed."""

import os
import socket
import subprocess
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from subagents.config import daemon_record
from subagents.config.daemon_record import RECORD_BYTES, DaemonRecord, own, parsed, read, written
from subagents.process_identity import UNKNOWN, start_of

HOST = socket.gethostname()
MACHINE = "ba9876543210"
"""Stands for the id of this machine, which containers have not."""
OTHER_BOOT = "11111111-2222-3333-4444-555555555555"


def record(**changed: object) -> DaemonRecord:
    return msgspec.structs.replace(own(), **{"machine": MACHINE, **changed})


class Where(NamedTuple):
    """What is known of a daemon from its record alone."""

    here: bool = False
    alive: bool = False
    earlier: bool = False
    other_machine: bool = False


WHERE: dict[str, tuple[DaemonRecord, Where, str]] = {
    "this process": (record(), Where(here=True, alive=True), "pid {pid}"),
    "an older process of the number": (record(start="1"), Where(here=True), "pid {pid}"),
    "a number that nobody has": (record(pid=2**22 + 1), Where(here=True), "pid 4194305"),
    "another container of this machine": (
        record(pid_namespace="pid:[4026539999]", host="web-7f9c"),
        Where(),
        "pid {pid} in another container of this machine, web-7f9c",
    ),
    "another container with our host's name": (
        record(pid_namespace="pid:[4026539999]"),
        Where(),
        f"pid {{pid}} in another container of this machine, {HOST}",
    ),
    "another machine over a network file system": (
        record(boot=OTHER_BOOT, host="db2"),
        Where(other_machine=True),
        "pid {pid} on db2",
    ),
    "another machine whose namespace has our number": (
        record(boot=OTHER_BOOT, host="db2", pid=1),
        Where(other_machine=True),
        "pid 1 on db2",
    ),
    "another machine of the same image and name": (
        record(boot=OTHER_BOOT, machine="0123456789ab"),
        Where(other_machine=True),
        f"pid {{pid}} on {HOST}",
    ),
    "before a reboot, on a system without a machine id": (
        record(boot=OTHER_BOOT, machine=UNKNOWN),
        Where(earlier=True),
        "",
    ),
    "before a reboot": (
        record(boot=OTHER_BOOT),
        Where(earlier=True),
        "",
    ),
    "this machine under a new name": (
        record(host="as-it-was"), Where(here=True, alive=True), "pid {pid}",
    ),
    "a version that wrote the number alone": (DaemonRecord(pid=os.getpid()), Where(), "pid {pid}"),
    "a system that tells nothing": (
        record(boot=UNKNOWN, pid_namespace=UNKNOWN, start=UNKNOWN), Where(), "",
    ),
}  # fmt: skip


@pytest.mark.requirement("daemon:lock:names-one-process")
@pytest.mark.parametrize("name", WHERE)
def test_where_a_daemon_is_follows_from_its_record(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemon_record, "_machine", lambda: MACHINE)
    found, where, words = WHERE[name]
    said = (found.is_here, found.is_alive, found.is_of_earlier_boot, found.is_on_other_machine)
    assert Where(*said) == where
    assert found.is_over == (where.earlier or (where.here and not where.alive))
    if words:
        assert found.words == words.format(pid=os.getpid())


@pytest.mark.requirement("daemon:lock:names-one-process")
def test_one_that_ended_is_not_alive_and_its_number_may_be_anybodys() -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        found = record(pid=child.pid, start=start_of(child.pid) or "")
        assert found.is_alive
        child.kill()
    assert found.is_over
    assert record(has_ended=True).is_over


CONTENTS: dict[str, tuple[bytes, DaemonRecord | None]] = {
    "nothing": (b"", None),
    "blanks of a version before": (b" " * 31 + b"\n", None),
    "blanks": (written(None), None),
    "a number of a version before": (b"4711".ljust(31) + b"\n", DaemonRecord(pid=4711)),
    "that number over a longer record": (
        b"4711".ljust(31) + b"\n" + b" " * 480, DaemonRecord(pid=4711),
    ),
    "a record": (written(record(pid=7)), record(pid=7)),
    "one that ended": (written(record(has_ended=True)), record(has_ended=True)),
    "one with what a later version adds": (b'{"pid":7,"started":"x"}', DaemonRecord(pid=7)),
    "half a record": (written(record())[:40], None),
    "no number": (b'{"pid":"7"}', None),
    "zero, which would be a whole group": (b"0", None),
    "a negative one, which would be everybody": (b'{"pid":-1}', None),
    "true": (b"true", None),
    "too large": (b"99999999999999999999", None),
    "other bytes": (b"\xff\xfe\x00", None),
    "a list": (b"[4711]", None),
}  # fmt: skip


@pytest.mark.requirement("daemon:lock:names-one-process")
@pytest.mark.parametrize("name", CONTENTS)
def test_a_files_content_is_one_record_or_nobody(name: str) -> None:
    content, wanted = CONTENTS[name]
    assert parsed(content) == wanted


@pytest.mark.requirement("daemon:lock:names-one-process")
def test_a_file_that_may_not_be_read_names_nobody(tmp_path: Path) -> None:
    assert read(tmp_path / "none") is None
    (tmp_path / "directory").mkdir()
    assert read(tmp_path / "directory") is None


@pytest.mark.requirement("daemon:lock:names-one-process")
def test_each_record_is_written_over_the_one_before_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "é" * 300)
    longest = msgspec.structs.replace(own(), pid=2**31 - 1, start="9" * 20, has_ended=True)
    assert {len(written(each)) for each in (None, own(), longest)} == {RECORD_BYTES}
    assert parsed(written(longest)) == longest
    assert daemon_record.own().host == "?" * 64
