"""``python -m tests.simulation.mutation_search``: the first seed that catches each mutation."""

import argparse
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import pytest
from tests.simulation import (
    client_mutations,
    cluster_mutations,
    cluster_simulator,
    domain_mutations,
    engine_mutations,
    store_mutations,
)
from tests.simulation.invariants import Broken
from tests.simulation.mutation_table import CLUSTER_MUTATIONS, MUTATIONS
from tests.simulation.simulator import Verdict, simulate

TABLES = (client_mutations, cluster_mutations, domain_mutations, engine_mutations, store_mutations)
ALL = MUTATIONS | CLUSTER_MUTATIONS
SEEDS_MAX = 500


def simulator_of(name: str) -> Callable[[int], Verdict]:
    """The one that is to catch a mutation."""
    return cluster_simulator.simulate if name in CLUSTER_MUTATIONS else simulate


class Caught(NamedTuple):
    """What caught a mutation."""

    seed: int
    broken: Broken


def caught_by(seeds: Iterable[int], simulated: Callable[[int], Verdict]) -> Caught | None:
    """The first of these seeds under which an invariant breaks as things are now."""
    for seed in seeds:
        verdict = simulated(seed)
        if verdict.broken is not None:
            return Caught(seed, verdict.broken)
    return None


def search(name: str) -> tuple[str, Caught | None]:
    """Look for a mutation through all seeds, from the first."""
    with pytest.MonkeyPatch.context() as patch:
        ALL[name](patch)
        return name, caught_by(range(SEEDS_MAX), simulator_of(name))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 0 = all were caught."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.mutation_search")
    parser.add_argument("names", nargs="*", help="which; all without")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes")
    options = parser.parse_args(arguments)
    survivors = 0
    with multiprocessing.get_context("fork").Pool(options.workers) as pool:
        for name, caught in pool.imap(search, options.names or sorted(ALL)):
            survivors += caught is None
            what = "survives" if caught is None else f"{caught.seed:4}  {caught.broken.invariant}"
            sys.stdout.write(f"{name:62} {what}\n")
            sys.stdout.flush()
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
