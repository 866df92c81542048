"""What a fuzz target is: a parser of what others write, and what must hold of it for any bytes."""

import resource
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, NamedTuple

INPUT_BYTES_MAX: Final = 100_000
SECONDS: Final = 1.0
"""Of this process's CPU, for one input of that size, unless a target says why it takes more."""
MEMORY_BYTES: Final = 512 * 1024 * 1024
"""What one input may add to the most that this process ever held."""
SOURCES: Final = str(Path(__file__).parents[2] / "src")


class Target(NamedTuple):
    """``check`` returns, or raises what is wrong: a refusal that a parser declares is caught in it."""

    name: str
    about: str
    """What it reads, for the list."""
    check: Callable[[bytes], None]
    seeds: Callable[[], Iterable[bytes]]
    """Inputs as they really come; mutations begin with them."""
    words: tuple[bytes, ...] = ()
    """What a mutation may put in."""
    seconds: float = SECONDS


class Slow(AssertionError):
    """It took too long for its size."""


class Big(AssertionError):
    """It took too much memory."""


class Finding(NamedTuple):
    """Something that must not be; two with the same ``place`` are one."""

    place: str
    text: str


def tried(target: Target, data: bytes, *, slowness: float = 1.0) -> Finding | None:
    """What is wrong with how ``target`` takes ``data``; None = nothing.

    Args:
        target: What to try.
        data: With what.
        slowness: By which factor our code is slower than usual: atheris watches each step.
    """
    began, held = time.process_time(), _most_bytes()
    try:
        target.check(data)
        took = time.process_time() - began
        if took > target.seconds * slowness:
            raise Slow(f"{took:.1f} s for {len(data):,} bytes")  # noqa: TRY301
        if _most_bytes() - held > MEMORY_BYTES:
            raise Big(f"{(_most_bytes() - held) >> 20} MiB for {len(data):,} bytes")  # noqa: TRY301
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
        frames = traceback.extract_tb(error.__traceback__)
        ours = [each for each in frames if each.filename.startswith(SOURCES)]
        last = (ours or frames)[-1]
        place = f"{type(error).__name__} in {Path(last.filename).name}:{last.lineno} {last.name}"
        return Finding(place, "".join(traceback.format_exception(error)))
    return None


def _most_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
