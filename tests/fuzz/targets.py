"""All targets by name."""

from collections.abc import Mapping
from typing import Final

from tests.fuzz.caller_targets import CALLER_TARGETS
from tests.fuzz.file_targets import FILE_TARGETS
from tests.fuzz.state_targets import STATE_TARGETS
from tests.fuzz.target import Target
from tests.fuzz.worker_targets import WORKER_TARGETS

TARGETS: Final[Mapping[str, Target]] = {
    each.name: each for each in (*WORKER_TARGETS, *CALLER_TARGETS, *FILE_TARGETS, *STATE_TARGETS)
}
