"""An assignment is a file between two programs, which may be of different versions."""

from pathlib import Path
from typing import Final

import msgspec
import pytest

from subagents.extensions.llm.llm_assignment import FILE, Assignment

WRITTEN: Final = Path(__file__).parents[2] / "data" / "attempts-0.1.0" / "llm-steer" / FILE


@pytest.mark.requirement("llm:options")
def test_an_assignment_of_0_1_0_is_read_whole() -> None:
    written = WRITTEN.read_bytes()

    again = msgspec.json.encode(msgspec.json.decode(written, type=Assignment))

    assert msgspec.json.decode(again) == msgspec.json.decode(written)
