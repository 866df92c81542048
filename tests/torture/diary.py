"""What a caller wrote down itself, outside of the service: what it asked for and what it was given.

One directory for each session. Of whatever died at any instant the rest is true: a spawn is noted
before and after, and what was handed over lies in a file of its own before anybody is told that it
was taken. Who judges (``verdict``) reads nothing but these files.
"""

import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ANNOUNCED: Final = re.compile(rb'A subagent task \\*"(t-[a-z0-9-]+)\\*" (just completed|\S+)')
"""How every announcement begins, whatever document it is quoted in."""
TAKE: Final = "take-"
ACKED: Final = "acked-"
SETTLED_NS: Final = 90_000_000_000
"""Nobody writes into a file that was begun so long ago."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """One result in one hand-over."""

    token: str
    began_ns: int
    """When the call for it began, on the clock that all processes share."""
    acked_ns: int
    """When the reader, alive, knew that it was acknowledged; 0 = it never knew."""
    is_ok: bool
    """The run is said to have succeeded."""
    is_whole: bool
    """The result that its worker printed stands beside it."""
    door: str


class Diary:
    """One session's.

    Args:
        place: Its directory; made when it is missing.
        door: By which way its results come, for the report.
    """

    def __init__(self, place: Path, door: str) -> None:
        self.place = place
        self.door = door
        self.place.mkdir(parents=True, exist_ok=True)
        self.holding = place / "holding"
        """Lies there while its caller has something in hand that it has not kept."""
        self._spawns = place / "spawns"
        self._settled: dict[str, list[Sighting]] = {}

    # -- what was asked for -------------------------------------------------------------------

    def will_spawn(self, token: str, ending: str) -> None:
        self._note(f"wants {token} {ending}")

    def has_spawned(self, token: str, run_id: str) -> None:
        self._note(f"acked {token} {run_id}")

    def _note(self, line: str) -> None:
        with self._spawns.open("ab", buffering=0) as file:
            file.write(f"{line}\n".encode())
            os.fsync(file.fileno())

    def _lines(self, kind: str) -> Iterator[tuple[str, str]]:
        if self._spawns.exists():
            for line in self._spawns.read_text(encoding="utf-8").split("\n")[:-1]:
                said, token, more = line.split(" ")
                if said == kind:
                    yield token, more

    def wanted(self) -> dict[str, str]:
        """Token → how its worker ends, of all that this session ever meant to spawn."""
        return dict(self._lines("wants"))

    def acknowledged(self) -> dict[str, str]:
        """Token → run id, of all spawns that were acknowledged."""
        return dict(self._lines("acked"))

    def unknown(self) -> dict[str, str]:
        """Of what was wanted: what may have been spawned or not, nobody was told."""
        known = self.acknowledged()
        return {token: ending for token, ending in self.wanted().items() if token not in known}

    # -- what was handed over -----------------------------------------------------------------

    def next_take(self) -> tuple[Path, int]:
        """The file for what comes next, and the instant at which it was asked for."""
        now_ns = time.monotonic_ns()
        return self.place / f"{TAKE}{now_ns}-{os.getpid()}", now_ns

    def took(self, data: bytes) -> Path:
        """Keep what is in hand, before anybody is told so; call it with the call's own file."""
        file, _ = self.next_take()
        return self.keep(file, data)

    def keep(self, file: Path, data: bytes) -> Path:
        with file.open("wb", buffering=0) as made:
            made.write(data)
            os.fsync(made.fileno())
        return file

    def was_acked(self, take: Path) -> None:
        """What is in ``take`` was acknowledged, and this reader knows it."""
        if take.exists() and ANNOUNCED.search(take.read_bytes()) is None:
            take.unlink()  # a look that found nothing new
            return
        name = f"{ACKED}{time.monotonic_ns()}-{take.name.removeprefix(TAKE)}"
        (self.place / name).touch()

    def given(self) -> set[str]:
        """Tokens of all that was handed over so far."""
        return {each.token for each in self.sightings()}

    def missing(self) -> set[str]:
        """Acknowledged spawns whose results were not handed over yet."""
        return set(self.acknowledged()) - self.given()

    def sightings(self) -> list[Sighting]:
        """Everything that was handed over, the oldest first."""
        acked = {}
        for file in self.place.glob(f"{ACKED}*"):
            at, _, take = file.name.removeprefix(ACKED).partition("-")
            acked[take] = int(at)
        found = []
        for file in sorted(self.place.glob(f"{TAKE}*")):
            name = file.name.removeprefix(TAKE)
            began_ns = int(name.partition("-")[0])
            if name in self._settled:
                found += self._settled[name]
                continue
            seen = [*self._in(file.read_bytes(), began_ns, acked.get(name, 0)).values()]
            found += seen
            if time.monotonic_ns() - began_ns > SETTLED_NS:
                self._settled[name] = seen
        return found

    def _in(self, data: bytes, began_ns: int, acked_ns: int) -> dict[str, Sighting]:
        """By token; one document may quote an announcement twice."""
        return {
            token: Sighting(
                token,
                began_ns=began_ns,
                acked_ns=acked_ns,
                is_ok=match[2] == b"just completed",
                is_whole=f"result of {token} ends".encode() in data,
                door=self.door,
            )
            for match in ANNOUNCED.finditer(data)
            for token in (match[1].decode(),)
        }


def diaries(root: Path) -> list[Diary]:
    """All below ``root``; the name of a directory is the door of its session."""
    return [Diary(place, place.name) for place in sorted(root.iterdir()) if place.is_dir()]
