"""What nearly every part of the engine stands on."""

from typing import NamedTuple

from subagents.engine.kernel.ledger import Ledger
from subagents.ports import EngineClock, OffLoop, Store


class Kernel(NamedTuple):
    """The ledger with its store, the threads that block in its place, and the time."""

    ledger: Ledger
    store: Store
    off_loop: OffLoop
    clock: EngineClock
