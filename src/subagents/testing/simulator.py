"""``python -m subagents.testing.simulator``: the real engine under seeded crashes.

Every seed is one small world: a handful of runs with dependencies, retries, contracts, children
and readers, on the real engine and a real SQLite file, in virtual time, with faults and crashes
drawn from the seed. A broken invariant prints the seed; the same seed gives the same run again.

Source: 2-lifecycle §11, §12; notes/engines §5, §6; 6-house-style guideline 37.
"""

import argparse
import gc
import logging
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from subagents.store.sqlite import SqliteStore
from subagents.testing.host import Host
from subagents.testing.invariants import Broken, Judge
from subagents.testing.loop import Stuck, VirtualClock, VirtualLoop
from subagents.testing.scenario import Scenario, faults_of, settings_of
from subagents.testing.world import Injected, World

STEPS_MAX: Final = 400_000
MEMORY_DISK: Final = Path("/dev/shm")  # noqa: S108 - only a faster place for temporary files


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one seed came to."""

    seed: int
    broken: Broken | None
    digest: str
    crashes: int
    events: int
    runs: int
    virtual_s: float
    steps: int
