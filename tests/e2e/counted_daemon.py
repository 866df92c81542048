"""What runs of a real program make a daemon ask of the system, counted; prints it as JSON.

``python -m tests.e2e.counted_daemon HOME cgroup|subreaper PROGRAM …``. A program of its own, for
what counts cannot be taken out again.
"""

import asyncio
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from subagents.client.client import AsyncClient
from subagents.config.paths import Paths
from subagents.engine.kernel.threads import DaemonThreads
from subagents.runtimes.process import cgroups
from subagents.wiring import embedded

RUNS: Final = 10
_OF_A_PROCESS: Final = re.compile(r"/proc/\d+/")
_counts: Counter[str] = Counter()


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and isinstance(arguments[0], str):
        _counts["process files"] += bool(_OF_A_PROCESS.match(arguments[0]))
    elif event == "os.listdir":
        _counts["looks at all processes"] += arguments[0] == "/proc"


def _count_fsyncs() -> None:
    fsync = os.fsync

    def counted(file: int) -> None:
        _counts["fsyncs"] += 1
        fsync(file)

    os.fsync = counted  # type: ignore[assignment]


def _count_turns() -> None:
    call = DaemonThreads.__call__

    def counted(threads: DaemonThreads, work: Callable[[], Any], /) -> "asyncio.Future[Any]":
        _counts[f"turns on threads for {threads._name}"] += 1
        return call(threads, work)

    DaemonThreads.__call__ = counted  # type: ignore[method-assign]


async def _main(home: Path) -> None:
    paths = Paths.resolve({"SUBAGENTS_HOME": str(home)})
    environ = {**os.environ, "SUBAGENTS_HOME": str(home)}
    body = {"spec": {"task": "work", "agentId": "counted"}, "cwd": "/"}
    async with embedded(paths, environ, overrides={}), AsyncClient(paths.socket) as client:
        for run in range(-3, RUNS):
            if run == 0:  # what is done once is done
                _counts.clear()
            run_id = (await client.post("/v1/runs", body))["runId"]
            asked = {"runIds": [run_id], "until": "all", "timeoutSeconds": 30}
            await client.post("/v1/wait", asked)
            # Its files go a moment after its result is there.
            while (await client.get(f"/v1/runs/{run_id}/status"))["phase"] != "completed":  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        found = dict(_counts)
    json.dump({name: number / RUNS for name, number in found.items()}, sys.stdout)


if __name__ == "__main__":
    _, directory, containment, *program = sys.argv
    if containment == "subreaper":
        cgroups.place = lambda: cgroups.Place(None, problem="not wanted")  # type: ignore[assignment]
    config = Paths.resolve({"SUBAGENTS_HOME": directory}).config_file
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(
        '[agents.main]\nsubagents.allow_agents = ["*"]\n'
        f'[agents.counted]\nruntime = "command"\ncommand = {json.dumps(program)}\n'
    )
    _count_fsyncs()
    _count_turns()
    sys.addaudithook(_hear)
    asyncio.run(_main(Path(directory)))
