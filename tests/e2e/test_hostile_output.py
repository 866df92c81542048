"""Workers that write what breaks parsers: their own run ends, and nothing else is touched."""

import random
from pathlib import Path
from typing import Final

import pytest
from tests.e2e.live_home import live_home
from tests.fuzz.mutations import mutated
from tests.fuzz.targets import TARGETS

WORKERS: Final = 8
MUTANTS: Final = 40
SEED: Final = 20261123


def hostile(file: Path, dice: random.Random) -> None:
    target = TARGETS["llm"]
    seeds = list(target.seeds())
    broken = (mutated(dice.choice(seeds), seeds, target.words, dice) for _ in range(MUTANTS))
    # Else some wait, rightly, until a model's provider takes more.
    file.write_bytes(b"\n".join(broken).replace(b'"isLimit"', b'"isOdd"'))


@pytest.mark.requirement("security:hostile-output")
def test_workers_that_print_broken_events_end_by_themselves_and_harm_no_other(
    tmp_path: Path,
) -> None:
    dice = random.Random(SEED)  # noqa: S311 - seeded on purpose: a failure must replay
    with live_home(tmp_path) as home:
        good = home.spawn("sleep 2; echo fine")
        runs = []
        for number in range(WORKERS):
            hostile(home.work / f"{number}", dice)
            runs.append(home.spawn(f"cat {number}; cat {number} >&2; exit {number % 2}"))

        (fine,) = home.finish(good)
        ended = home.finish(*runs)

        assert (fine["outcome"]["status"], fine["result"].strip()) == ("ok", "fine")
        assert all(each["outcome"]["status"] in {"ok", "error", "partial"} for each in ended)
        for run in runs:
            assert home.get(f"/v1/runs/{run}/log", limit=1000)["lines"]
            home.show(run)
        assert "could not be recorded" not in home.log()
        assert home.is_up()
