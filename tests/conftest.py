"""What holds for all tests: which of them run, the loop of those that are ``async``, the profile of
the property tests, and a Ctrl-C that works.
"""

import asyncio
import inspect
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import HealthCheck, settings
from tests.tier_report import TierReport
from tests.tiers import Selection, Tier, Tiers

if TYPE_CHECKING:
    from tests.engine.world import World

EXAMPLES: Final = {Tier.test: 20, Tier.check: 40, Tier.ci: 40}
"""Of a property test that says nothing else; later 500."""

for name in ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"):
    # Images of containers often set both. Without bytecode each of hundreds of processes compiles
    # all of it again, and what is never buffered hides that a command does not flush.
    os.environ.pop(name, None)
sys.dont_write_bytecode = False

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell that starts this in the background says so; the programs under test inherit it, and
    # then no Ctrl-C of a test would reach them.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--tier",
        choices=[*Tier.__members__],
        default=Tier.test.name,
        help="how much of tests/tiers.toml runs: each tier runs those before it, too (test)",
    )


def pytest_configure(config: pytest.Config) -> None:
    tier = Tier[config.getoption("tier")]
    config.pluginmanager.register(Selection(config, Tiers.read(), tier))
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(TierReport(config, tier))
    settings.register_profile(
        "suite",
        deadline=None,  # the machine may be busy with other tests
        derandomize=True,  # the same examples on every machine; the simulator explores further
        max_examples=EXAMPLES.get(tier, 500),
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("suite")


@pytest.fixture
def short_path() -> Iterator[Path]:
    """As ``tmp_path``, where a Unix socket's path has room whichever worker runs the test."""
    with tempfile.TemporaryDirectory(prefix="s-") as made:
        yield Path(made)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """An ``async`` test has a loop of its own, on which the fixtures are entered that need one."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None

    async def play() -> None:
        async with AsyncExitStack() as held:
            given = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
            for name, value in given.items():
                if isinstance(value, AbstractAsyncContextManager):
                    given[name] = await held.enter_async_context(value)
            await pyfuncitem.obj(**given)

    asyncio.run(play())
    return True


@pytest.fixture
def world(request: pytest.FixtureRequest, tmp_path: Path) -> "World":
    """An engine that runs while the test does; ``pytest.mark.world`` has its options."""
    from tests.engine.world import World  # noqa: PLC0415 - not all tests need an engine

    mark = request.node.get_closest_marker("world")
    return World(tmp_path, **({} if mark is None else mark.kwargs))
