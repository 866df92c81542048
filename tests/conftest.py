"""What holds for all tests: which of them run, the profile of the property tests, and a Ctrl-C that
works.
"""

import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, settings
from tests.tier_report import TierReport
from tests.tiers import Selection, Tier, Tiers

EXAMPLES: Final = {Tier.test: 20, Tier.check: 80, Tier.ci: 80}
"""Of a property test that says nothing else; later 500."""

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
