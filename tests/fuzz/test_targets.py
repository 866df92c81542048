"""Every parser takes what it is known to be given, and some hundred broken forms of it.

``python -m tests.fuzz`` looks for what breaks them; this is so much of it as a test may take.
"""

import random
import subprocess
import sys

import pytest
from tests.fuzz.mutations import mutated
from tests.fuzz.target import Target, tried
from tests.fuzz.targets import TARGETS

SEED = 20261123
MUTANTS = 400


@pytest.mark.requirement("fuzz:replay")
@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_no_parser_is_broken_by_what_others_write(target: Target) -> None:
    dice = random.Random(SEED)
    seeds = list(target.seeds())
    broken = [mutated(dice.choice(seeds), seeds, target.words, dice) for _ in range(MUTANTS)]

    for data in (*seeds, b"", *broken):
        found = tried(target, data)
        assert found is None, f"{data[:2000]!r}\n{found.text}"


@pytest.mark.requirement("fuzz:replay")
def test_the_same_dice_break_the_same_input_in_the_same_way() -> None:
    seeds = list(TARGETS["texts"].seeds())

    one, other = (
        [mutated(seeds[0], seeds, (b"x",), dice) for _ in range(50)]
        for dice in (random.Random(1), random.Random(1))
    )

    assert one == other
    assert len(set(one)) > 30


@pytest.mark.requirement("fuzz:finds")
def test_an_error_and_a_slow_answer_are_findings() -> None:
    def parse(data: bytes) -> None:
        if b"slow" in data:
            sum(range(3_000_000))
        assert b"bad" not in data

    def seeds() -> list[bytes]:
        return [b"good"]

    target = Target("planted", "", parse, seeds, seconds=0.005)

    assert tried(target, b"good") is None
    assert "parse" in (tried(target, b"a bad one") or ("",))[0]
    assert "Slow" in (tried(target, b"slow") or ("",))[0]


@pytest.mark.requirement("fuzz:finds")
def test_the_driver_tries_a_target_and_says_how_often() -> None:
    argv = [sys.executable, "-m", "tests.fuzz", "git", "--minutes", "0.02", "--without-atheris"]

    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "| git " in done.stdout
    assert "| none |" in done.stdout
