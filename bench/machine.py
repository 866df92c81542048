"""What the numbers were measured on, as far as it changes them."""

import os
import platform
import sqlite3
import time
from pathlib import Path

from bench.table import percentiles

SYNCS = 200


def describe(directory: Path) -> str:
    """Cores, memory, versions, load, and what one fsync costs in ``directory``."""
    sync = fsync_ms(directory)
    load, _, _ = os.getloadavg()
    return (
        f"{os.cpu_count()} cores ({_model()}), {_memory_gb():.0f} GB, {platform.system()} "
        f"{platform.release().split('-')[0]}, Python {platform.python_version()}, "
        f"SQLite {sqlite3.sqlite_version}; fdatasync p50 {sync[0]:.2f} ms, p99 {sync[1]:.2f} ms; "
        f"load {load:.1f} before it began"
    )


def fsync_ms(directory: Path) -> tuple[float, float]:
    """Median and 99th percentile of appending one page and making it durable."""
    taken = []
    file = directory / "fsync"
    with file.open("wb", buffering=0) as target:
        for _ in range(SYNCS):
            target.write(b"x" * 4096)
            began = time.perf_counter()
            os.fdatasync(target.fileno())
            taken.append(time.perf_counter() - began)
    file.unlink()
    return percentiles(taken)


def _model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except FileNotFoundError:
        return platform.machine()
    found = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(found, platform.machine())


def _memory_gb() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
