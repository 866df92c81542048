"""``python -m tests.simulation.mutation_search``: a seed that catches each mutation.

The known one is tried first, then all from the first on; what is found is written down in
``known_seeds.json``, which the tests and the simulators read.
"""

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
    simulator,
    store_mutations,
)
from tests.simulation.invariants import Broken
from tests.simulation.known_seeds import known_seeds, write_known_seeds
from tests.simulation.mutation_table import CLUSTER_MUTATIONS, MUTATIONS
from tests.simulation.simulator import Verdict

TABLES = (client_mutations, cluster_mutations, domain_mutations, engine_mutations, store_mutations)
ALL = MUTATIONS | CLUSTER_MUTATIONS
SEEDS_MAX = 1000
STEPS_MAX = 100_000
"""Four times what a seed needs: a broken daemon that never rests is known by then."""


def program_of(name: str) -> str:
    """The simulator that is to catch a mutation, as ``Verdict.program`` has it."""
    return "cluster_simulator" if name in CLUSTER_MUTATIONS else "simulator"


def simulator_of(name: str) -> Callable[[int], Verdict]:
    """What runs one seed of it."""
    return cluster_simulator.simulate if name in CLUSTER_MUTATIONS else simulator.simulate


def break_daemon(name: str, patch: pytest.MonkeyPatch) -> None:
    """Put the mutation into the daemons that are simulated from now on."""
    ALL[name](patch)
    for each in (simulator, cluster_simulator):
        patch.setattr(each, "STEPS_MAX", STEPS_MAX)


def known_seed(name: str) -> int | None:
    """The one that caught it the last time."""
    return known_seeds(program_of(name)).get(name)


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
    """Look for a mutation: under the seed that is known to catch it, then under all."""
    known = known_seed(name)
    first = () if known is None else (known,)
    with pytest.MonkeyPatch.context() as patch:
        break_daemon(name, patch)
        return name, caught_by((*first, *range(SEEDS_MAX)), simulator_of(name))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table and write the seeds down; 0 = all were caught."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.mutation_search")
    parser.add_argument("names", nargs="*", help="which; all without")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes")
    options = parser.parse_args(arguments)
    seeds = {name: known_seed(name) for name in ALL}
    with multiprocessing.get_context("fork").Pool(options.workers) as pool:
        for name, caught in pool.imap(search, options.names or sorted(ALL)):
            seeds[name] = None if caught is None else caught.seed
            what = "survives" if caught is None else f"{caught.seed:4}  {caught.broken.invariant}"
            sys.stdout.write(f"{name:62} {what}\n")
            sys.stdout.flush()
    write_known_seeds(
        {
            program: {
                name: seed
                for name, seed in seeds.items()
                if seed is not None and program_of(name) == program
            }
            for program in sorted({program_of(name) for name in ALL})
        }
    )
    return 1 if None in seeds.values() else 0


if __name__ == "__main__":
    sys.exit(main())
