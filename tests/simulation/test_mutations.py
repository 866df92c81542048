"""The simulator is only worth its time if it finds what is broken: here it must."""

from collections.abc import Callable

import pytest
from tests.simulation.mutation_search import ALL, break_daemon, caught_by, known_seed, simulator_of


@pytest.mark.requirement("simulator:catches-mutations")
@pytest.mark.parametrize("name", sorted(ALL))
def test_a_broken_daemon_is_caught_by_the_seed_that_is_known_to_catch_it(
    name: str, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    seed = known_seed(name)
    way_out = (
        f"\n  python -m tests.simulation.mutation_search {name}  # make mutations: for all\n"
        "looks for another seed and writes it into tests/simulation/known_seeds.json: commit that."
        "\nWhere it finds none, an invariant is missing, or nobody needs what was broken."
    )
    assert seed is not None, f"No seed is known to catch {name}.{way_out}"
    break_daemon(name, monkeypatch)
    caught = caught_by((seed,), simulator_of(name))
    assert caught is not None, f"Seed {seed} does not catch {name} any more.{way_out}"
    record_property("invariant", caught.broken.invariant)
