"""DBOS beside it: its SQLite mode as shipped, a workflow of six steps that do nothing.

Started directly, not through a queue: a queue polls once a second by default and is slower.
The workflows are plain functions; asynchronous ones were slower still.
"""

import logging
import time
from pathlib import Path

from dbos import DBOS, DBOSConfig

STEPS = 6


def measure(database: Path, *, runs: int) -> dict[str, float]:
    """Runs per second through ``DBOS.start_workflow`` and ``get_result``."""
    config: DBOSConfig = {
        "name": "bench",
        "system_database_url": f"sqlite:///{database}",
        "log_level": "WARNING",
    }
    logging.getLogger("dbos").setLevel(logging.WARNING)
    DBOS(config=config)

    @DBOS.step()
    def step(number: int) -> int:
        return number

    @DBOS.workflow()
    def life(number: int) -> int:
        return sum(step(number) for _ in range(STEPS))

    DBOS.launch()
    try:
        DBOS.start_workflow(life, 0).get_result()
        began = time.perf_counter()
        handles = [DBOS.start_workflow(life, number) for number in range(runs)]
        total = sum(handle.get_result() for handle in handles)
        took = time.perf_counter() - began
        assert total == STEPS * sum(range(runs))
    finally:
        DBOS.destroy()
    return {"runs_per_s": runs / took}
