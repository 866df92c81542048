"""What the tests say at their end: how many ran, how long they took, and what was left out."""

import os
import time
from collections import Counter
from pathlib import Path
from textwrap import shorten
from typing import Final

import msgspec
import pytest
from tests.tiers import Tier

RECORD: Final = Path(__file__).with_name("last_green.json")
"""What each tier came to when all of it was last green; ``scripts/gate.py`` writes it."""
WHY_MAX: Final = 48


class TierReport:
    """Prints it below pytest's own summary."""

    def __init__(self, config: pytest.Config, tier: Tier) -> None:
        self._tier = tier
        self._began = time.monotonic()
        self._skipped: Counter[str] = Counter()
        self._ran = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and isinstance(report.longrepr, tuple):
            self._skipped[report.longrepr[2].removeprefix("Skipped: ")] += 1
        elif report.when == "call":
            self._ran += 1

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        seconds = time.monotonic() - self._began
        if "SUBAGENTS_TIER_RESULT" in os.environ:
            result = {"tests": self._ran, "seconds": round(seconds), "left_out": self._skipped}
            Path(os.environ["SUBAGENTS_TIER_RESULT"]).write_bytes(msgspec.json.encode(result))
        lines = [f"{self._ran:,} tests in {seconds:.0f} s{self._rest()}"]
        if self._skipped:
            most = self._skipped.most_common()
            reasons = "; ".join(
                f"{shorten(why, WHY_MAX, placeholder='…')} ({n})" for why, n in most
            )
            lines.append(f"left out here: {reasons}")
        for line in lines:
            terminalreporter.write_line(line)

    def _rest(self) -> str:
        """What all the tests have more, as it was when they were last green."""
        record = msgspec.json.decode(RECORD.read_bytes()) if RECORD.exists() else {}
        whole = record.get(Tier.all.name)
        if self._tier is Tier.all or whole is None:
            return ""
        more = f"{whole['tests'] - self._ran:,} more, {whole['seconds'] / 60:.0f} minutes"
        return f"; `make test-all` has {more}"
