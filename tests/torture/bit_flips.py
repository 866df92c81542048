"""Flips single bits of a database of real life, and asks of each copy what the whole one answers.

    python -m tests.torture.bit_flips --minutes 5 --seed 1

What may come of a flipped bit: the start is refused with words and not a byte is changed; a run,
message or event is set aside and named, and everything else is answered as before; or nobody can
see a difference. Anything else is a fault, and is printed with the bit that made it.
"""

import asyncio
import logging
import random
import re
import shutil
import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from tests.engine.world import ME, OTHER, World, in_world
from tests.torture.bed import Bed, main

from subagents.domain.run.run import Phase
from subagents.domain.run.values import RunId
from subagents.errors import CorruptState, StoreUnavailable
from subagents.ports import RunFilter
from subagents.store.sqlite.sqlite_store import SqliteStore

ALL: Final = 100_000
FLIPS_MAX: Final = 1_000_000
FAR_MS: Final = 10**15
NAME: Final = "subagents.db"
OUTCOMES: Final = ("refused", "set aside", "indexes made again", "no difference", "WRONG")

Answers: TypeAlias = dict[str, dict[str, object]]
"""By question: each thing that was answered, by its name."""


class Copy(NamedTuple):
    """The files of a database at one instant, and what it answers."""

    files: Mapping[str, bytes]
    answers: Answers


class Flip(NamedTuple):
    place: str
    file: str
    offset: int
    bit: int


# -- a life ----------------------------------------------------------------------------------------


async def _live(world: World, *, rounds: int) -> None:
    """Some of everything: every kind of end, children, questions, keys, messages read and not."""
    for number in range(rounds):
        for agent in ("quick", "fail", "flaky", "tooled", "says_report", "unstartable"):
            await world.spawn(agent, label=f"{agent} {number}", task=f"{agent} ☃ " * 20)
        await world.clock.advance(60)
        await world.engine.sweep.once()
    ended = await world.engine.queries.inbox(ME, unconsumed=True, limit=ALL)
    read = [row.message.id for row in ended][::2]
    await world.engine.mailbox.acknowledge(read, reader="me")
    parent = await world.spawn("hang", idempotency_key="parent")
    await world.until(parent, Phase.RUNNING)
    for agent in ("slow", "tells", "hang", "quick"):
        await world.spawn_child(parent, agent, idempotency_key=f"child {agent}")
    await world.engine.control.steer(parent, "go on ☃", by="me")
    for number in range(4):
        await world.spawn("hang", label=f"open {number}", idempotency_key=f"key {number}")
        await world.spawn("slow", depends_on=(parent,), retry_count=2)
        await world.try_spawn("hang", requester=OTHER)
    await world.spawn("fail", retry_count=3, retry_delay=600_000)
    await world.clock.advance(15)


def copies(directory: Path) -> tuple[Copy, Copy]:
    """Of one life: when everything was in the database, and later, with much of it in the log."""
    found: list[dict[str, bytes]] = []

    async def scenario(world: World) -> None:
        await _live(world, rounds=6)
        with closing(sqlite3.connect(world.path)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        found.append(_files(world.path))
        # So much that the log does not begin anew: what is left of an old one means nothing.
        await _live(world, rounds=1)
        found.append(_files(world.path))

    logging.disable()
    in_world(directory, scenario, max_children_per_agent=100, max_spawn_depth=3, max_concurrent=20)
    logging.disable(logging.NOTSET)
    whole = []
    for number, files in enumerate(found):
        place = directory / f"whole{number}"
        _write(place, files)
        with closing(SqliteStore(place / NAME, synchronous="OFF")) as store:
            store.open("whole")
            whole.append(Copy(files, asked(store, {})))
    return whole[0], whole[1]


def _files(path: Path) -> dict[str, bytes]:
    suffixes = ("", "-wal", ".lock")
    files = {f"{NAME}{each}": Path(f"{path}{each}").read_bytes() for each in suffixes}
    return {name: content for name, content in files.items() if content}


def _write(place: Path, files: Mapping[str, bytes]) -> None:
    place.mkdir()
    for name, content in files.items():
        (place / name).write_bytes(content)


# -- questions -------------------------------------------------------------------------------------


def asked(store: SqliteStore, whole: Answers) -> Answers:
    """Everything that the store can be asked; of single things those that ``whole`` has."""
    found: Answers = {}
    runs: dict[str, object] = {
        run.id: run for run in store.runs(RunFilter(archived=True, limit=ALL))
    }
    ids = [RunId(each) for each in whole.get("runs", runs)]
    found["runs"] = runs
    found["open"] = {run.id: run for run in store.load_open()}
    found["run"] = {}
    for run_id in ids:
        try:
            found["run"][run_id] = store.run(run_id)
        except CorruptState:
            continue
    filters = {
        "mine": RunFilter(requester=ME, limit=ALL),
        "theirs": RunFilter(requester=OTHER, limit=ALL),
        "labelled": RunFilter(label="open 1", limit=ALL),
        "of an agent": RunFilter(agent_id="hang", limit=ALL),
        "running": RunFilter(phases=(Phase.RUNNING,), limit=ALL),
        "ended": RunFilter(ended_after_ms=1, archived=True, limit=ALL),
        "shown": RunFilter(limit=ALL),
        **{f"below {each}": RunFilter(requester_run=each, limit=ALL) for each in ids[-20:]},
    }
    for name, where in filters.items():
        found[name] = {run.id: run for run in store.runs(where)}
        found[f"count of {name}"] = {"difference": store.count(where, most=ALL) - len(found[name])}
    found["keys"] = {
        f"{run_id}/{key}": True for run_id, keys in store.load_keys().items() for key in keys
    }
    found["keys of"] = {
        f"{run_id}/{key}": True for run_id, keys in store.load_keys(ids).items() for key in keys
    }
    found["outbox"] = {entry.key: entry for entry in store.load_outbox()}
    found["leases"] = {held.run_id: held for held in store.load_leases()}
    found["idempotency"] = {f"{each[0]} {each[1]}": each[2] for each in store.load_idempotency(0)}
    found["found"] = {run_id: list(store.find(run_id)) for run_id in ids}
    found["journal"] = {
        f"{run_id}/{entry.seq}": entry
        for run_id in ids
        for entry in store.journal(run_id, limit=ALL)
    }
    found["feed"] = {
        f"{each.entry.run_id}/{each.entry.seq}": each for each in store.feed(after=0, limit=ALL)
    }
    for name, session in (("all", None), ("my", ME), ("their", OTHER)):
        for unread in (True, False):
            found[f"{name} messages {unread}"] = {
                row.message.id: row for row in store.inbox(session, unconsumed=unread, limit=ALL)
            }
    unread_ids = found["all messages True"]
    found["unread"] = dict.fromkeys((*store.unread(ME, ALL), *store.unread(OTHER, ALL)), True)
    found["count of unread"] = {"difference": store.unread_total() - len(unread_ids)}
    for message_id in whole.get("all messages False", found["all messages False"]):
        row = store.message(message_id)
        if row is not None:
            found.setdefault("message", {})[message_id] = row
    found["archivable"] = dict.fromkeys(store.archivable(FAR_MS, ALL), True)
    found["prunable"] = dict.fromkeys(store.prunable(FAR_MS, ALL), True)
    return found


def differences(whole: Answers, found: Answers, aside: Iterable[tuple[str, str]]) -> list[str]:
    """What was answered otherwise, and what is missing without being named.

    What is set aside because of a flipped bit in its id has a name that nothing had before. A run
    whose unread message no longer says whose it is is archived as if there was none.
    """
    names = {name for name, _ in aside}
    known = {item for answers in whole.values() for item in answers}
    renamed = len(names - known)
    touched = {run_id for _, run_id in aside}

    def may_miss(question: str, item: str) -> bool:
        of = re.split(r"[/:]", item)[0]
        if item in names or of in names or (question == "prunable" and of in touched):
            return True
        # Its flipped id is that of another run: in this world ids are numbers in a row.
        return any(_is_flipped(name, each) for name in names for each in (item, of))

    def may_be_new(question: str, item: str) -> bool:
        # Its unread message is set aside, and no longer says whose it was.
        lost = whole.get("all messages True", {}).keys() - found.get("all messages True", {}).keys()
        return question == "archivable" and any(each.startswith(f"{item}:") for each in lost)

    wrong = []
    for question in whole.keys() | found.keys():
        before, now = whole.get(question, {}), found.get(question, {})
        missing = [item for item in before if item not in now and not may_miss(question, item)]
        if len(missing) > renamed:
            wrong += [f"{question}: {item} is missing" for item in missing]
        for item in before.keys() | now.keys():
            if item not in now:
                continue
            if item not in before:
                if may_be_new(question, item):
                    continue
                wrong.append(f"{question}: {item} is new")
            elif now[item] != before[item] and not may_miss(question, item):
                wrong.append(f"{question}: {item} is another one")
    return wrong


def _is_flipped(name: str, before: str) -> bool:
    """Whether one bit makes the one the other."""
    if len(name) != len(before):
        return False
    bits = [ord(one) ^ ord(other) for one, other in zip(name, before, strict=True)]
    return sum(each.bit_count() for each in bits) == 1


# -- flips -----------------------------------------------------------------------------------------


def flips(count: int, seed: int, of: tuple[Copy, Copy]) -> Iterable[tuple[Copy, Flip]]:
    """Half in a database without a log; a quarter each in one with a log, and in the log."""
    drawn = random.Random(seed)
    places = (
        ("database", of[0], NAME),
        ("database", of[0], NAME),
        ("database beside a log", of[1], NAME),
        ("log", of[1], f"{NAME}-wal"),
    )
    for _ in range(count):
        place, copy, file = drawn.choice(places)
        offset = drawn.randrange(len(copy.files[file]))
        yield copy, Flip(place, file, offset, drawn.randrange(8))


def outcome(directory: Path, copy: Copy, flip: Flip) -> tuple[str, list[str]]:
    """One of ``OUTCOMES``, and what was wrong."""
    content = bytearray(copy.files[flip.file])
    content[flip.offset] ^= 1 << flip.bit
    files = {**copy.files, flip.file: bytes(content)}
    shutil.rmtree(directory, ignore_errors=True)
    _write(directory, files)
    said: list[str] = []
    handler = _Heard(said)
    logging.getLogger("subagents").addHandler(handler)
    try:
        with closing(SqliteStore(directory / NAME, synchronous="OFF")) as store:
            try:
                store.open("flipped")
            except (CorruptState, StoreUnavailable) as error:
                store.close()
                return "refused", _refused(directory, files, error)
            found = asked(store, copy.answers)
            aside = {(each.name, each.run_id) for each in store.set_aside()}
        wrong = differences(copy.answers, found, aside)
        wrong += asyncio.run(_started(directory, copy))
    except Exception as error:  # noqa: BLE001 - every way to break is to be seen
        return "WRONG", [f"broke: {error!r}"]
    finally:
        logging.getLogger("subagents").removeHandler(handler)
    if wrong:
        return "WRONG", wrong
    if aside:
        return "set aside", []
    is_made_again = any("made again" in each for each in said)
    return ("indexes made again" if is_made_again else "no difference"), []


def _refused(directory: Path, files: Mapping[str, bytes], error: Exception) -> list[str]:
    changed = [
        name
        for name, content in files.items()
        if not name.endswith(".lock")
        and (not (directory / name).exists() or (directory / name).read_bytes() != content)
    ]
    return [f"refused, and {name} was changed ({error})" for name in changed]


async def _started(directory: Path, copy: Copy) -> list[str]:
    """What an engine over it has at work: every open run but those set aside."""
    world = World(directory)
    await world.boot()
    try:
        aside = {each.name for each in await world.engine.queries.set_aside()}
        wanted = {run_id for run_id in copy.answers["open"] if run_id not in aside}
        loaded: set[str] = set(world.engine.ledger.published)
        await world.clock.advance(1)
        started = {launch.run_id for launch in world.runtime.launches}
        return [
            *(f"engine: {each} is not loaded" for each in wanted - loaded),
            *(f"engine: {each} is loaded though set aside" for each in loaded & aside),
            *(f"engine: {each} was started though set aside" for each in started & aside),
        ]
    finally:
        await world.crash()


class _Heard(logging.Handler):
    def __init__(self, said: list[str]) -> None:
        super().__init__()
        self._said = said

    def emit(self, record: logging.LogRecord) -> None:
        self._said.append(record.getMessage())


class Result(NamedTuple):
    """What came of all flips."""

    outcomes: Counter[tuple[str, str]]
    """By place and outcome."""
    faults: list[str]
    seconds: float

    def table(self) -> str:
        places = sorted({place for place, _ in self.outcomes})
        lines = [f"{'':24}" + "".join(f"{each:>20}" for each in OUTCOMES)]
        lines += [
            f"{place:24}" + "".join(f"{self.outcomes[place, each]:>20}" for each in OUTCOMES)
            for place in places
        ]
        total = "".join(
            f"{sum(self.outcomes[place, each] for place in places):>20}" for each in OUTCOMES
        )
        return "\n".join((*lines, f"{'all':24}{total}"))


def run(
    count: int,
    seed: int,
    *,
    told: Callable[[str], None] = lambda _: None,
    is_over: Callable[[], bool] = lambda: False,
) -> Result:
    """Flip ``count`` bits, one at a time.

    Args:
        count: How many.
        seed: Which; the same seed flips the same bits of the same database.
        told: Called with every fault when it is found.
        is_over: Asked before each, whether there is no time for more.
    """
    begun_s = time.monotonic()
    outcomes: Counter[tuple[str, str]] = Counter()
    faults: list[str] = []
    with tempfile.TemporaryDirectory(prefix="bit-flips-") as directory:
        whole = copies(Path(directory))
        logging.getLogger("subagents").propagate = False
        for copy, flip in flips(count, seed, whole):
            if outcomes and is_over():
                break
            what, wrong = outcome(Path(directory) / "flipped", copy, flip)
            what = "WRONG" if wrong else what
            outcomes[flip.place, what] += 1
            if wrong:
                faults.append(f"{flip}: {len(wrong)} faults: {'; '.join(wrong[:3])}")
                told(faults[-1])
    logging.getLogger("subagents").propagate = True
    return Result(outcomes, faults, time.monotonic() - begun_s)


def torture(bed: Bed) -> None:
    found = run(FLIPS_MAX, bed.findings.seed, told=bed.wrong, is_over=lambda: not bed.left_s)
    bed.say(f"\n{found.table()}")
    counts = Counter[str]()
    for (_, what), count in found.outcomes.items():
        counts[what] += count
    seen = ", ".join(f"{counts[each]:,} {each}" for each in OUTCOMES)
    bed.saw("a bit of the database or its log flipped", sum(counts.values()), seen)


if __name__ == "__main__":
    main("bit_flips", torture)
