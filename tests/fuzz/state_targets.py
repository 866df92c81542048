"""What lies on the disk: files of attempts, stored rows, transcripts; a crash or a hand may have
written anything there."""

import contextlib
import json
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec
from tests.builders import NOW_MS, in_phase
from tests.extensions.claude import claude_folds
from tests.fuzz.target import Target

from subagents.api.calls import refusals
from subagents.config.state_file import read_entries
from subagents.domain.lifecycle.reduce import reduce
from subagents.domain.run.effects import decode_effects, encode_effects
from subagents.domain.run.events import decode_event, encode_event
from subagents.domain.run.run import Phase
from subagents.domain.run.values import RunId
from subagents.domain.run.worker_output import LineType
from subagents.domain.transcript.transcript_query import Checkpoint, Line, LogQuery
from subagents.errors import ConfigError, IllegalTransition
from subagents.extensions.conversation.dialect import InputLine
from subagents.extensions.conversation.turn_reader import CHECKPOINT, TurnReader
from subagents.extensions.conversation.worker_input import IN, SENT, WorkerInput
from subagents.extensions.track_record.track_record_files import PerformanceFiles
from subagents.runtimes.process.shim import AttemptDirectory
from subagents.store.progress_files import ProgressFiles
from subagents.store.rows import origin_of, run_from, state_of
from subagents.store.transcripts.transcript_files import TranscriptFiles

RUN: Final = RunId("r-abcdefghij")
SEPARATOR: Final = b"\n====\n"
"""Between what goes into one file and the next."""
STATE: Final = Path(__file__).parents[1] / "data" / "attempts-0.1.0"
_lines: Final = msgspec.json.Decoder(list[Line])
SHIM_FILES: Final = ("exit", "pid", "claim", "feeder", "discarded")
_MEMORY: Final = "/dev/shm" if Path("/dev/shm").is_dir() else None


@contextlib.contextmanager
def place() -> Iterator[Path]:
    """A directory in memory."""
    with tempfile.TemporaryDirectory(dir=_MEMORY) as name:
        yield Path(name)


def attempt_files(data: bytes) -> None:
    """What the shim writes down, each part in one file."""
    parts = data.split(SEPARATOR)
    with place() as root:
        directory = AttemptDirectory(root, RUN, 1)
        directory.path.mkdir(parents=True)
        for name, content in zip(SHIM_FILES, parts, strict=False):
            (directory.path / name).write_bytes(content)
        found = directory.exit()
        assert found is None or (found.code is None) != (found.signal is None)
        for identity in (directory.shim(), directory.worker(), directory.feeder()):
            assert identity is None or identity.pid >= 0
        assert directory.ended_alone in {True, False}
        assert directory.was_stopped in {True, False}
        directory.discarded()


def attempt_file_seeds() -> Iterable[bytes]:
    boot = "0f0c9a2e-1d2b-4b7e-9a53-5d0e8f0a1b2c"
    claim = f"shim 4711 123456\nboot {boot}\n".encode()
    pid = f"boot {boot}\nshim 4711 123456\nworker 4712 123457\nsession 4712\n".encode()
    feeder = f"feeder 4713 123458\nboot {boot}\n".encode()
    for end in (b"code 0 alone\n", b"code 137\n", b"signal 9\n", b"", b"code"):
        yield SEPARATOR.join((end, pid, claim, feeder, b"1024 0 result all\n"))


def turn_files(data: bytes) -> None:
    """A conversation's checkpoint and what was sent to it, read by the next daemon."""
    state, _, rest = data.partition(SEPARATOR)
    sent, _, out = rest.partition(SEPARATOR)
    with place() as root:
        directory = AttemptDirectory(root, RUN, 1)
        directory.path.mkdir(parents=True)
        (directory.path / CHECKPOINT).write_bytes(state)
        (directory.path / SENT).write_bytes(sent)
        (directory.path / IN).write_bytes(b"")
        (directory.path / "out").write_bytes(out)
        # Of one that cannot be read the supervisor gives up that attempt, when its lease is over.
        with contextlib.suppress(OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            reader = TurnReader(
                claude_folds.DIALECT, claude_folds.OPENING, directory, WorkerInput(directory.path),
                cursor=0, positions={}, now_ms=lambda: NOW_MS, on_change=lambda: None,
            )  # fmt: skip
            while reader.read()[1]:
                pass
            reader.worker_input.send([InputLine("k", b"{}")])
            reader.finish()


def turn_file_seeds() -> Iterable[bytes]:
    for folder in sorted(STATE.iterdir()):
        state = (folder / "state").read_bytes()
        yield state + SEPARATOR + b'{"key":"k1","line":"{}"}\n' + SEPARATOR + b'{"type":"x"}\n'


def rows(data: bytes) -> None:
    """An event, an effect, a run: what decodes is legal or refused, and is written back the same."""
    first, _, second = data.partition(SEPARATOR)
    with contextlib.suppress(msgspec.DecodeError):
        event = decode_event(first)
        assert decode_event(encode_event(event)) == event
        run = in_phase(Phase.RUNNING).run
        with contextlib.suppress(IllegalTransition):
            run = reduce(run, event).run
            assert run_from(origin_of(run), state_of(run)) == run
    with contextlib.suppress(msgspec.DecodeError):
        effects = decode_effects(first)
        assert decode_effects(encode_effects(effects)) == effects
    with contextlib.suppress(msgspec.DecodeError):
        run = run_from(first, second)
        assert run_from(origin_of(run), state_of(run)) == run


def row_seeds() -> Iterable[bytes]:
    for phase in Phase:
        life = in_phase(phase)
        yield origin_of(life.run) + SEPARATOR + state_of(life.run)
        for event in life.journal:
            yield encode_event(event)
        yield encode_effects((7, index, effect) for index, effect in enumerate(life.effects))


def state_files(data: bytes) -> None:
    """The same bytes as each kind of file that grows by lines."""
    with place() as root:
        transcripts = root / RUN
        transcripts.mkdir()
        (transcripts / "0000000001.jsonl").write_bytes(data)
        files = TranscriptFiles(root)
        page = files.read(RUN, LogQuery())
        assert _lines.decode(msgspec.json.encode(page.lines)) == list(page.lines)
        files.read(RUN, LogQuery(after_seq=1, types=(LineType.TEXT,), grep="a"))
        kept = files.resume(RUN)
        line = Line(seq=kept.seq + 1, ts=kept.ts, type=LineType.TEXT, text="new", attempt=1)
        files.append(RUN, [line], Checkpoint(seq=kept.seq + 1, ts=kept.ts), bytes_max=1_000_000)
        files.read(RUN, LogQuery(limit=1))
        (root / f"{RUN}.jsonl").write_bytes(data)
        ProgressFiles(root).read(RUN)
        records = PerformanceFiles(root)
        records.file(1).parent.mkdir(parents=True, exist_ok=True)
        records.file(1).write_bytes(data)
        records.read(1, offset=0)
        (root / "refusals.jsonl").write_bytes(data)
        refusals._tail(root / "refusals.jsonl")
        with contextlib.suppress(ConfigError):
            read_entries(root / "refusals.jsonl", dict[str, str], hint="")


def state_file_seeds() -> Iterable[bytes]:
    lines = [json.dumps([n, NOW_MS + n, "text", 1, f"line {n}"]) for n in range(1, 6)]
    mark = msgspec.json.encode(Checkpoint(seq=5, ts=NOW_MS + 5, positions={"1/out": 7})).decode()
    yield ("\n".join([*lines, mark]) + "\n").encode()
    yield ("\n".join([*lines, mark, *lines, mark]) + "\n[6,7,").encode()
    yield b'{"number":1,"phase":"tests","percentComplete":5}\n{"number":2,"phase":"x"}\n'
    yield b'{"atMs":1,"code":"forbidden","message":"no","surface":"http"}\n'
    yield b'{"a":{"b":"c"}}'


STATE_TARGETS: Final = (
    Target("attempt-files", "what the shim writes down", attempt_files, attempt_file_seeds),
    Target("turn-files", "a conversation's checkpoint and input", turn_files, turn_file_seeds),
    Target("rows", "events, effects and runs as they are stored", rows, row_seeds),
    Target(
        "state-files", "transcripts, progress, records, refusals", state_files, state_file_seeds
    ),
)
