"""Who holds the home: what the one daemon writes into the file that it locks.

The lock says that there is a daemon, and only the record says which process it is. A home may be
shared with a container or another machine, where the same number is another process; so the record
names the start, the boot, the pid namespace and the host as well, and a number alone is never
believed.
"""

import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final

import msgspec

from subagents.config.socket_path import digest
from subagents.process_identity import UNKNOWN, boot_id, pid_namespace, start_of

RECORD_BYTES: Final = 512
"""The size of the file, always: writing over it needs no room on a full disk."""
HOST_CHARS_MAX: Final = 64

Pid = Annotated[int, msgspec.Meta(gt=0, lt=2**31)]


class DaemonRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A daemon that holds a home, or held it last."""

    pid: Pid
    start: str = UNKNOWN
    """When the process started, in ticks since the boot."""
    boot: str = UNKNOWN
    """``-``: a version that wrote only its number left it, or its system does not say."""
    pid_namespace: str = UNKNOWN
    host: str = UNKNOWN
    machine: str = UNKNOWN
    """Stands for the installation: machines made of one image are often called the same."""
    has_ended: bool = False
    """It was asked to stop, and did; one that was killed could not write this."""

    @property
    def is_here(self) -> bool:
        """Whether its number means the same to us, since this boot."""
        where = (self.boot, self.pid_namespace, self.host)
        if UNKNOWN in where[:2]:
            # macOS has neither a boot id nor pid namespaces.
            return where == (boot_id(), pid_namespace(), _host())
        return where[:2] == (boot_id(), pid_namespace())

    @property
    def is_alive(self) -> bool:
        """Whether that very process runs here now."""
        return self.is_here and start_of(self.pid) == self.start

    @property
    def is_over(self) -> bool:
        """Whether it certainly runs no more; of one elsewhere only its lock tells."""
        return self.has_ended or self.is_of_earlier_boot or (self.is_here and not self.is_alive)

    @property
    def is_of_earlier_boot(self) -> bool:
        """Whether this machine was started again since."""
        is_known = UNKNOWN not in {self.boot, boot_id()}
        return is_known and self.boot != boot_id() and self._is_of_this_machine

    @property
    def is_on_other_machine(self) -> bool:
        """Whether no socket leads there from here."""
        is_known = self.host != UNKNOWN
        return is_known and self.boot != boot_id() and not self._is_of_this_machine

    @property
    def _is_of_this_machine(self) -> bool:
        ids = {self.machine, _machine()}
        return self.host == _host() and (len(ids) == 1 or UNKNOWN in ids)

    @property
    def words(self) -> str:
        """Which process it is, for people: ``pid 7 on db2``."""
        if self.is_here or self.host == UNKNOWN:
            return f"pid {self.pid}"
        if self.is_on_other_machine:
            return f"pid {self.pid} on {self.host}"
        return f"pid {self.pid} in another container of this machine, {self.host}"


def own(*, has_ended: bool = False) -> DaemonRecord:
    """The record of this process."""
    return DaemonRecord(
        pid=os.getpid(),
        start=start_of(os.getpid()) or UNKNOWN,
        boot=boot_id(),
        pid_namespace=pid_namespace(),
        host=_host(),
        machine=_machine(),
        has_ended=has_ended,
    )


def written(record: DaemonRecord | None) -> bytes:
    """A file's whole content; of None it says that nobody is known to hold the home."""
    text = b"" if record is None else msgspec.json.encode(record)
    return text.ljust(RECORD_BYTES - 1) + b"\n"


def parsed(content: bytes) -> DaemonRecord | None:
    """What a file says; None = nobody, or nothing that can be understood.

    Versions up to 0.2 wrote the number alone.
    """
    try:
        found = msgspec.json.decode(content[:RECORD_BYTES], type=Pid | DaemonRecord)
        return found if isinstance(found, DaemonRecord) else DaemonRecord(pid=found)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def read(lock_file: Path) -> DaemonRecord | None:
    """What the file of a home's lock says; None also where there is none that we may read."""
    try:
        with lock_file.open("rb") as file:
            return parsed(file.read(RECORD_BYTES))
    except OSError:
        return None


def _host() -> str:
    name = socket.gethostname().encode("ascii", "replace").decode()
    return name[:HOST_CHARS_MAX] or UNKNOWN


def _machine() -> str:
    # Not the id itself, which is confidential: machine-id(5).
    with suppress(OSError, UnicodeDecodeError):
        if found := Path("/etc/machine-id").read_text(encoding="ascii").strip():
            return digest(f"subagents {found}")
    return UNKNOWN
