"""Where the runtimes' suite tries workers that are processes; docs/howto/own-runtime.md uses it."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

from subagents.domain.run.values import RunId, SessionKey, attempt_id, replace
from subagents.engine.kernel.system_clock import SystemClock
from subagents.extensions.testing.runtime_place import LOOK_S, Work
from subagents.ports import AttemptRef, Launch, Runtime
from subagents.runtimes.process import cgroups
from subagents.runtimes.process.processes import marked
from subagents.runtimes.process.shim import ProcessAttempts
from subagents.runtimes.runtime_plugins import RuntimeHost

RUN = RunId("r-bench")


class ProcessPlace:
    """See ``RuntimePlace``: a subclass says what makes its worker do each ``Work``.

    A context manager: what a test leaves running is ended with it.

    Args:
        root: A directory of the test's own.
        make: What the entry point names.
    """

    tool = ""
    tasks: Mapping[Work, str] = {}
    """The task for each; what is not among them this worker cannot."""
    options: Mapping[str, object] = {}
    """``runtime_options`` of its agent."""
    env: Mapping[str, str] = {"PATH": os.environ.get("PATH", os.defpath)}
    """What the worker gets besides."""

    def __init__(self, root: Path, make: Callable[[RuntimeHost], Runtime]) -> None:
        self.root, self.cwd = root / "attempts", root / "work"
        self.cwd.mkdir(parents=True, exist_ok=True)
        self._make = make

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        end_all(self.root)

    def runtime(self) -> Runtime:
        return self._make(host(self.root))

    def launch(self, work: Work, number: int = 1) -> Launch | None:
        task = self.tasks.get(work)
        if task is None:
            return None
        cwd = self.cwd / "not-there" if work is Work.CANNOT_START else self.cwd
        launch = a_launch(cwd, number)
        given = {"options": dict(self.options), "env": dict(self.env)}
        return replace(launch, task=task, prompt=task, **given)

    def messages(self, runtime: Runtime, ref: AttemptRef, texts: Sequence[str]) -> Sequence[str]:
        del runtime, ref
        return [each for each in texts if each != "waiting"]

    def used_tool(self, names: Sequence[str]) -> bool:
        return bool(names)

    def alive(self) -> int:
        return len(marked(str(self.root)))

    def files(self) -> int:
        return sum(1 for each in self.root.rglob("*") if not each.is_dir())


def host(root: Path) -> RuntimeHost:
    """What a daemon with its attempts there gives a runtime."""
    clock, threads = SystemClock(), asyncio.to_thread
    return RuntimeHost(ProcessAttempts(root, clock, threads), clock, threads, ())


def a_launch(cwd: Path, number: int = 1) -> Launch:
    """An attempt to start there; vary it with ``domain.run.values.replace``."""
    return Launch(
        attempt_id=attempt_id(RUN, number),
        run_id=RUN,
        number=number,
        session_key=SessionKey("agent:build:subagent:1"),
        requester=SessionKey("agent:main:main"),
        agent_id="build",
        label="bench",
        task="do it",
        prompt="Task: do it",
        previous_results="",
        system_prompt="",
        cwd=str(cwd),
        options={},
    )


def end_all(root: Path) -> None:
    """End whatever is left of attempts there. Blocking."""
    place = str(root)
    while left := [*marked(place), *cgroups.left_behind(cgroups.seen(place), ())]:
        for _, pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(LOOK_S)
