"""``doctor --bundle``: what a bug report needs, in one file, without secrets.

Everything passes the redaction that transcripts pass. Tasks, labels, results and transcripts of
runs are left out: they are the user's work, and rarely what is wrong with ours.
"""

import io
import os
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from subagents.cli import output
from subagents.cli.connection import caller_cwd, paths, session
from subagents.client.client import Client, Document
from subagents.config.paths import Paths
from subagents.domain.redaction.own_secrets import own_secrets
from subagents.domain.redaction.redact import redact
from subagents.domain.redaction.redact_events import redact_value
from subagents.errors import EXIT_OK, StoreUnavailable, SubagentsError, UsageError
from subagents.text import size

LOG_BYTES: Final = 512 * 1024
"""How much of the end of the daemon's log is taken."""
RUNS_MAX: Final = 500
OF_A_RUN: Final = (
    *("runId", "agentId", "runtime", "phase", "runStatus", "attempt", "attemptsMax", "depth"),
    *("createdAt", "startedAt", "endedAt", "phaseSinceAt", "pendingRequestCount", "vacuous"),
)


def packed(file: Path | None, report: Document, *, json: bool) -> int:
    """Pack it, and list what is in it.

    Args:
        file: A new one; None = one with the time, here.
        report: What ``doctor`` found.
        json: Print the list as a document.

    Raises:
        UsageError: The file exists.
        StoreUnavailable: It cannot be written.
    """
    target = file or Path(caller_cwd()) / time.strftime("subagents-support-%Y%m%d-%H%M%S.tar.gz")
    home = paths()
    contents = dict(_contents(home, report))
    try:
        # Created closed to others: what is no secret may still be private.
        descriptor = os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError as error:
        told = f"{target} exists; a bundle needs a new file"
        raise UsageError(told, details={"field": "FILE"}) from error
    except OSError as error:
        raise StoreUnavailable(f"cannot write {target}: {error.strerror}") from error
    with os.fdopen(descriptor, "wb") as raw, tarfile.open(fileobj=raw, mode="w:gz") as archive:
        for name, content in contents.items():
            entry = tarfile.TarInfo(f"subagents-support/{name}")
            entry.size, entry.mtime, entry.mode = len(content), int(time.time()), 0o600
            archive.addfile(entry, io.BytesIO(content))
    if json:
        sizes = {name: len(content) for name, content in contents.items()}
        output.document({"file": str(target), "contents": sizes})
        return EXIT_OK
    output.line(str(target))
    for name, content in contents.items():
        output.note(f"  {name:<14} {size(len(content))}")
    output.note("Secrets are replaced by [redacted]; look through it before you share it.")
    return EXIT_OK


def _contents(home: Paths, report: Document) -> Iterator[tuple[str, bytes]]:
    from subagents.cli.setup.paths_command import places  # noqa: PLC0415
    from subagents.extensions.doctor.version_command import versions  # noqa: PLC0415

    own, config = _secrets_and_config(home)
    here = {each.name: str(each.path) for each in places(home, Path(caller_cwd()))}
    for name, value in (
        ("versions.json", versions(home)),
        ("paths.json", here),
        ("doctor.json", report),
        ("config.json", config),
        ("runs.json", _runs(home)),
    ):
        plain = msgspec.to_builtins(value)
        yield name, msgspec.json.format(msgspec.json.encode(redact_value(plain, own)), indent=2)
    yield "daemon.log", redact(_log(home), own).encode()


def _secrets_and_config(home: Paths) -> tuple[tuple[str, ...], Document]:
    """Values that must not be repeated, and the configuration as it is shown."""
    from subagents.config.layers import load  # noqa: PLC0415

    own = set(own_secrets({}, given=os.environ))
    try:
        config = load(Path(caller_cwd()), os.environ, paths=home)
    except SubagentsError as error:
        return tuple(own), error.to_wire()
    for agent in config.settings.agents.values():
        own |= set(own_secrets({**agent.options, "env": agent.env}, os.environ))
    leaves = list(config.leaves())
    own |= {str(each.value) for each in leaves if each.is_secret and len(str(each.value)) >= 8}
    shown = [
        {
            "key": each.key,
            "value": each.shown,
            "origin": each.origin,
        }
        for each in leaves
    ]
    document: Document = {"files": [str(each) for each in config.files], "values": shown}
    return tuple(sorted(own, key=len, reverse=True)), document


def _runs(home: Paths) -> Document:
    """How runs stand; why there is nothing where the daemon does not say."""
    try:
        with Client(home.socket, session=session()) as client:
            found = client.get("/v1/runs", {"archived": 1, "limit": RUNS_MAX}).get("runs")
    except SubagentsError as error:
        return {"unknown": error.message}
    rows = found if isinstance(found, list) else []
    return {"runs": [_state(each) for each in rows]}


def _state(row: Document) -> Document:
    outcome = row.get("outcome")
    state = {name: row.get(name) for name in OF_A_RUN}
    if isinstance(outcome, dict):
        state["outcome"] = {name: outcome.get(name) for name in ("status", "reason")}
    return state


def _log(home: Paths) -> str:
    """The end of the log, from the beginning of a line."""
    try:
        with home.log_file.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - LOG_BYTES))
            is_cut = log.tell() > 0
            text = log.read().decode(errors="replace")
    except OSError as error:
        return f"no log: {error.strerror}\n"
    return text.partition("\n")[2] if is_cut else text
