"""Several nodes on this machine: daemons with homes of their own on one PostgreSQL."""

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.conformance_resume.service import BOUND_S, Node, Service, Unreachable, until

USER: Final = "postgres"
"""Who the server runs as where this is root, as whom it never runs."""
CONFIG: Final = """
[daemon]
node = "{name}"
store = "{url}"

[cluster]
listen = "127.0.0.1:{port}"
url = "https://127.0.0.1:{port}"
secret = "of-these-nodes-alone"
"""


@contextlib.contextmanager
def several_nodes(
    program: Path, root: Path, chance: random.Random, *, nodes: int
) -> Iterator[Service]:
    """A cluster below ``root``; nothing of it is alive afterwards.

    Raises:
        RuntimeError: PostgreSQL is not installed.
    """
    root.chmod(0o755)
    with _postgres(root / "postgres") as url:
        made = [_node(program, root, f"n{number}", url) for number in range(1, nodes + 1)]
        service = Service(made, root, chance)
        try:
            for node in made:
                node.start()
            until(lambda: _is_divided(made[0], nodes), what="a share of each node")
            yield service
        finally:
            service.clean_up()


def _node(program: Path, root: Path, name: str, url: str) -> Node:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = CONFIG.format(name=name, url=url, port=port)
    return Node(program, root / name, root / "ledger", config=config)


def _is_divided(node: Node, nodes: int) -> bool:
    with contextlib.suppress(Unreachable):
        found = node.call("GET", "/v1/cluster")
        owned = [each["partitions"] for each in found["nodes"]]
        return len(owned) == nodes and min(owned) > sum(owned) / nodes / 2 and not found["unowned"]
    return False


@contextlib.contextmanager
def _postgres(directory: Path) -> Iterator[str]:
    """The address of a database, for as long as the block."""
    found = shutil.which("initdb")
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda each: each.parent.name)
    programs = Path(found).parent if found else next(reversed(installed), None)
    if programs is None:
        raise RuntimeError("PostgreSQL is not installed: apt install postgresql")
    directory.mkdir()
    who: list[str | Path] = []
    if os.geteuid() == 0:
        shutil.chown(directory, USER, USER)
        who = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
    data = directory / "data"
    made: list[str | Path] = [*who, programs / "initdb", f"--pgdata={data}", "--auth=trust"]
    made += ["--username=suite", "--locale=C.UTF-8"]
    subprocess.run(made, check=True, capture_output=True, cwd=directory)
    with (directory / "log").open("ab") as log:
        server = subprocess.Popen(
            [*who, programs / "postgres", f"-D{data}", f"-k{directory}", "-clisten_addresses="],
            stdout=log,
            stderr=log,
            cwd=directory,
        )
    try:
        until(lambda: _is_ready(data), what=f"PostgreSQL: see {directory / 'log'}")
        yield f"postgresql://suite@/postgres?host={directory}&schema=resume"
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(BOUND_S)


def _is_ready(data: Path) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return "ready" in (data / "postmaster.pid").read_text("utf-8")
    return False
