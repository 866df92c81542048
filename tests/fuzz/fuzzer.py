"""Tries one target for a while: guided by coverage with atheris where it is there, else by dice.

Run in a process of its own: atheris ends the process it runs in. Prints a line for each finding,
and at the end how often it tried, as libFuzzer does.
"""

import argparse
import hashlib
import random
import sys
import time
from pathlib import Path
from typing import Any, Final

CORPUS: Final = Path(__file__).parents[2] / ".fuzz"
"""What was found to reach new code is kept there, and each finding's input."""
WATCHED: Final = {
    **dict.fromkeys(("http", "mcp", "sockets"), ("api", "text", "domain.rules")),
    **dict.fromkeys(("stdio", "client-files"), ("cli.bridge", "cli.install")),
    **dict.fromkeys(("plan", "config"), ("config", "cli.runs", "api.wire")),
    **dict.fromkeys(
        ("contract", "grep"), ("engine.verification", "domain.rules", "store.transcripts")
    ),
    **dict.fromkeys(
        ("texts", "git"), ("text", "cli.output", "domain.text", "extensions.worktrees", "couriers")
    ),
    "command-lines": ("cli.parser", "cli.runs"),
    "secrets": ("domain.redaction",),
}
WATCHED_ELSE: Final = ("runtimes", "domain", "store")
"""Packages of ours whose coverage guides; each costs seconds at the start."""
KEPT_BYTES_MAX: Final = 32_000
WATCHED_SLOWNESS: Final = 5.0
HANG_S: Final = 60
MEMORY_MIB: Final = 2_048


class Trial:
    """Counts, and keeps what was found."""

    def __init__(self, name: str, seed: int, *, slowness: float = 1.0) -> None:
        # Here, for atheris instruments what is imported after it.
        from tests.fuzz import mutations  # noqa: PLC0415
        from tests.fuzz.target import tried  # noqa: PLC0415
        from tests.fuzz.targets import TARGETS  # noqa: PLC0415

        self.target = TARGETS[name]
        self.place = CORPUS / name
        self.place.mkdir(parents=True, exist_ok=True)
        self.seeds = list(self.target.seeds())
        self.executions = 0
        self.began = time.monotonic()
        self.findings = set[str]()
        self._seed, self._slowness = seed, slowness
        self._mutated, self._tried = mutations.mutated, tried

    def one(self, data: bytes) -> int:
        """What libFuzzer is told: -1 = keep this one out of the corpus, for it is slow to try."""
        self.executions += 1
        found = self._tried(self.target, data, slowness=self._slowness)
        if found is not None and found.place not in self.findings:
            folder = CORPUS / "findings"
            folder.mkdir(exist_ok=True)
            name = f"{self.target.name}-{hashlib.sha256(data).hexdigest()[:12]}"
            (folder / name).write_bytes(data)
            (folder / f"{name}.txt").write_text(found.text, errors="replace")
            self.findings.add(found.place)
            print(f"FOUND {found.place} ({folder / name})", flush=True)
        return -1 if len(data) > KEPT_BYTES_MAX else 0

    def other(self, data: bytes, dice: random.Random) -> bytes:
        return self._mutated(data, self.seeds, self.target.words, dice)

    def by_dice(self, seconds: float) -> None:
        dice = random.Random(self._seed)
        for data in self.seeds:
            self.one(data)
        while time.monotonic() - self.began < seconds:
            self.one(self.other(dice.choice(self.seeds), dice))
        print(f"stat::number_of_executed_units: {self.executions}", flush=True)


def guided_by_coverage(atheris: Any, name: str, seed: int, seconds: int) -> None:
    # By name alone: to ask the target itself would import what is to be watched.
    watched = WATCHED.get(name, WATCHED_ELSE)
    with atheris.instrument_imports(include=[f"subagents.{each}" for each in watched]):
        trial = Trial(name, seed, slowness=WATCHED_SLOWNESS)
    for data in trial.seeds:
        (trial.place / hashlib.sha256(data).hexdigest()).write_bytes(data)

    def other(data: bytes, most: int, number: int) -> bytes:
        dice = random.Random(number)
        if dice.randrange(2):
            return bytes(atheris.Mutate(data, min(most, 2 * len(data) + 64)))
        return trial.other(data, dice)[:most]

    flags = (
        *(f"-max_total_time={seconds}", f"-seed={seed}", "-max_len=100000", "-len_control=0"),
        *(f"-timeout={HANG_S}", f"-rss_limit_mb={MEMORY_MIB}", "-print_final_stats=1"),
        f"-artifact_prefix={trial.place.parent}/ended-{name}-",
    )
    atheris.Setup([sys.argv[0], *flags, str(trial.place)], trial.one, custom_mutator=other)
    atheris.Fuzz()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.fuzzer")
    parser.add_argument("target")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--without-atheris", action="store_true")
    given = parser.parse_args()
    try:
        import atheris  # type: ignore[import-untyped,import-not-found,unused-ignore]  # noqa: PLC0415
    except ImportError:
        atheris = None
    if atheris is None or given.without_atheris:
        Trial(given.target, given.seed).by_dice(given.seconds)
    else:
        guided_by_coverage(atheris, given.target, given.seed, given.seconds)


if __name__ == "__main__":
    main()
