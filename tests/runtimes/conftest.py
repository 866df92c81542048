"""What the tests of attempts that are processes share."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.runtimes.attempt_harness import Harness


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[Harness]:
    with Harness(tmp_path) as harness:
        yield harness
