"""The seeds that are known to catch a mutation; ``make mutations`` looks for them anew."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

Known: TypeAlias = Mapping[str, int]
"""By the name of the mutation."""

_FILE = Path(__file__).with_suffix(".json")


def known_seeds(program: str) -> Known:
    """What this simulator caught the last time; see ``Verdict.program``."""
    programs: dict[str, Known] = json.loads(_FILE.read_text())
    return programs[program]


def write_known_seeds(programs: Mapping[str, Known]) -> None:
    """They replace those of before."""
    _FILE.write_text(json.dumps(programs, indent=2, sort_keys=True) + "\n")
