"""The dialect of docs/howto/own-runtime.md works as it stands there."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from tests.runtimes.attempt_harness import BOUND_S, Ended, Harness, off_loop, until_async

from subagents.domain.run.run import Exit
from subagents.domain.run.values import replace
from subagents.engine.kernel.system_clock import SystemClock
from subagents.ports import Launch, Runtime
from subagents.runtimes.process.shim import ProcessAttempts
from subagents.runtimes.runtime_plugins import RuntimeHost

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "own-runtime.md"
BLOCK = re.compile(r"```python\n(# acme_subagents.*?)```", re.DOTALL)
PROGRAM = r"""#!/bin/sh
echo "session s-1"
while read -r word rest; do
    case $word in
        do) echo "say began $rest" ;;
        also) echo "got ${rest%% *}"; echo "say ${rest#* }"; echo done; exit 0 ;;
        stop) echo done; exit 0 ;;
    esac
done
"""


def runtime_of(harness: Harness) -> Runtime:
    names: dict[str, Any] = {}
    for block in re.findall(
        r"```python\n(# acme_subagents.*?)```", PAGE.read_text("utf-8"), re.DOTALL
    ):
        exec(block, names)  # noqa: S102 - the page's own code
    clock = SystemClock()
    attempts = ProcessAttempts(harness.root, clock, off_loop)
    made: Runtime = names["runtime"](RuntimeHost(attempts, clock, off_loop, ()))
    return made


def launch_of(harness: Harness) -> Launch:
    program = harness.cwd / "acme"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    path = f"{harness.cwd}:/usr/bin:/bin"
    return replace(harness.launch(), prompt="the task", options={}, env={"PATH": path})


@pytest.mark.requirement("plugins:documented-dialect")
def test_the_documented_dialect_starts_is_steered_and_gives_its_result(tmp_path: Path) -> None:
    with Harness(tmp_path) as harness:

        async def go() -> Ended:
            runtime = runtime_of(harness)
            await runtime.start(launch_of(harness))
            seen: list[Any] = []

            async def watch() -> None:
                async for each in runtime.watch(harness.ref(), cursor=0, positions={}):
                    seen.append(each)  # noqa: PERF401 - looked at while it grows

            async with asyncio.timeout(BOUND_S):
                watching = asyncio.create_task(watch())
                await until_async("its first words", lambda: "began" in str(seen))
                await runtime.steer(harness.ref(), "turn left", key="k1")
                await watching
            return Ended(seen)

        ended = asyncio.run(go())

    assert [each.text for each in ended.output if each.text] == ["began the task", "turn left"]
    assert (ended.result.text, ended.result.is_error) == ("turn left", False)
    assert ended.exited.exit == Exit(code=0)
