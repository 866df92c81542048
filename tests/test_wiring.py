"""What the daemon's process asks of the system before it serves, and what its engine is given."""

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from subagents.config.layers import load
from subagents.config.paths import Paths
from subagents.wiring import build_node

ARENAS_OF_TWENTY_THREADS = """
import ctypes, sys, threading
from subagents.process_tuning import bound_arenas
if sys.argv[2] == "bounded":
    bound_arenas()
libc = ctypes.CDLL(None)
libc.malloc.restype = libc.fopen.restype = ctypes.c_void_p
together = threading.Barrier(20)
def allocate():
    together.wait()
    libc.malloc(10_000)
    together.wait()
threads = [threading.Thread(target=allocate) for _ in range(20)]
for each in threads: each.start()
for each in threads: each.join()
file = libc.fopen(sys.argv[1].encode(), b"w")
libc.malloc_info(0, ctypes.c_void_p(file))
libc.fclose(ctypes.c_void_p(file))
"""


@pytest.mark.requirement("memory:threads")
@pytest.mark.skipif(sys.platform != "linux", reason="glibc's own limit")
def test_twenty_threads_share_two_pools_of_memory(tmp_path: Path) -> None:
    def arenas(how: str) -> int:
        file = tmp_path / f"{how}.xml"
        command = [sys.executable, "-c", ARENAS_OF_TWENTY_THREADS, str(file), how]
        done = subprocess.run(command, capture_output=True, timeout=60, check=False)
        if b"malloc_info" in done.stderr:
            pytest.skip("the C library is not glibc")
        assert done.returncode == 0, done.stderr
        return file.read_text().count("<heap nr=")

    assert arenas("bounded") <= 2 < arenas("unbounded")


@pytest.mark.requirement("attempts:node")
@pytest.mark.parametrize("name", [None, "box-1"])
def test_attempts_record_the_configured_name_of_their_daemon_else_the_hosts(
    tmp_path: Path, name: str | None
) -> None:
    paths = Paths.resolve({"SUBAGENTS_HOME": str(tmp_path)})
    overrides = {} if name is None else {"daemon.node": name}
    node = build_node(paths, load(None, {}, paths=paths, overrides=overrides))
    for threads in node.threads:
        with closing(threads):
            pass

    assert node.engine.adapters.node == (name or os.uname().nodename)
