"""What programs that work write: each dialect's lines, plain output, and what becomes of both.

All that a worker writes goes the whole way here: through its parser, redaction, the detectors, the
reducer, and into a stored row and back.
"""

import json
import re
import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
from tests.builders import NOW_MS, in_phase
from tests.extensions.acp import acp_folds
from tests.extensions.claude import claude_folds
from tests.extensions.codex import codex_folds
from tests.extensions.llm import llm_folds
from tests.fuzz.target import Target

from subagents.domain.alerts import detectors
from subagents.domain.lifecycle.reduce import reduce
from subagents.domain.redaction.redact_events import Redactors, redact_event, redact_output
from subagents.domain.run.alert import AlertRules
from subagents.domain.run.events import SignalReceived, decode_event, encode_event
from subagents.domain.run.run import Phase
from subagents.domain.run.signals import ResultSeen, Signal
from subagents.domain.run.values import AttemptId, replace
from subagents.domain.run.worker_output import LINE_CHARS_MAX, OutputBatch, OutputItem
from subagents.domain.transcript.transcript_query import Checkpoint, Line
from subagents.extensions.conversation.dialect import Dialect, InputLine, Opening, TurnStep
from subagents.extensions.detectors.tool_findings import findings_of
from subagents.runtimes.output.output_reader import Output
from subagents.runtimes.output.worker_events import event_of, output_item_of, signal_of
from subagents.store.rows import origin_of, run_from, state_of

STREAMS: Final = Path(__file__).parents[1] / "data" / "streams"
TOOL_OUTPUTS: Final = Path(__file__).parents[1] / "data" / "tool_outputs"
RULES: Final = AlertRules()
STREAM_S: Final = 3.0
"""An input may be 50,000 lines, and each goes all the way here by itself: 20 µs."""
NOTE_CHARS: Final = 200
"""A line that was cut says by how much."""

_checkpoints: Final = msgspec.json.Decoder(Checkpoint)
_lines: Final = msgspec.json.Decoder(list[Line])


class Heard:
    """What is done with items and signals, as the recorder and the ledger do it."""

    def __init__(self) -> None:
        self.watch = detectors.begin(detectors.Watch(), attempt=1, at_ms=NOW_MS)
        self.redactors = Redactors()
        self.run = in_phase(Phase.RUNNING).run
        self.number = 0
        self.has_result = False

    def items(self, items: Sequence[OutputItem]) -> None:
        shown, self.redactors = redact_output(items, self.redactors, ())
        assert len(shown) == len(items), "redaction lost or invented an item"
        self.watch, alerts = detectors.observe(
            self.watch, shown, at_ms=NOW_MS, rules=RULES, findings_of=findings_of
        )
        for each in items:
            assert len(each.text) <= LINE_CHARS_MAX + NOTE_CHARS, f"{len(each.text)} characters"
        lines = [Line(seq=1, ts=1, type=each.type, text=each.text, attempt=1) for each in shown]
        assert _lines.decode(msgspec.json.encode(lines)) == lines
        out, err = self.redactors
        kept = Checkpoint(watch=self.watch, redactor=out, redactor_stderr=err)
        assert _checkpoints.decode(msgspec.json.encode(kept)) == kept
        msgspec.json.encode(alerts)

    def signal(self, signal: Signal) -> None:
        self.number += 1
        self.has_result = self.has_result or isinstance(signal, ResultSeen)
        named = replace(signal, key=f"k{self.number}")
        event = redact_event(SignalReceived(at_ms=NOW_MS, attempt=1, signal=named))
        assert decode_event(encode_event(event)) == event
        self.run = reduce(self.run, event).run
        assert run_from(origin_of(self.run), state_of(self.run)) == self.run


def spoken(dialect: Dialect[Any], opening: Opening, data: bytes) -> None:
    """A whole turn, with messages and an interruption put into it at every stage."""
    heard, keys, sent = Heard(), 0, set[str]()
    step: TurnStep[Any] = dialect.begin(opening)
    _answers(step.input_lines, sent)
    for number, line in enumerate(data.split(b"\n")):
        step = dialect.read_line(step.state, line, now_ms=NOW_MS + number if number % 2 else None)
        _answers(step.input_lines, sent)
        heard.items(step.output)
        for each in step.signals:
            heard.signal(each)
        if number % 5 == 2:
            keys += 1
            steered = dialect.steer(step.state, "and this", key=f"m{keys}")
            _answers(() if steered is None else (steered,), sent)
            assert dialect.accepted(step.state, f"m{keys}") in {None, True, False}
        if number % 7 == 3:
            assert _kept(step.state) == step.state, "a checkpoint holds another state"
    stopped = dialect.interrupt(step.state, key="stop")
    _answers(() if stopped is None else (stopped,), sent)
    was_done = dialect.is_done(step.state)
    last = dialect.finish(step.state)
    heard.items(last.output)
    for each in last.signals:
        heard.signal(each)
    assert was_done or heard.has_result, "an open turn that ended has no result"


def _kept(state: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(state), type=type(state))


def _answers(input_lines: Iterable[InputLine], sent: set[str]) -> None:
    for each in input_lines:
        assert b"\n" not in each.line
        json.loads(each.line)
        sent.add(each.key)


def acp(data: bytes) -> None:
    """The first byte chooses whose agent it is."""
    agent = AGENTS[data[0] % len(AGENTS)] if data else AGENTS[0]
    opening = acp_folds.opening() if agent == "" else acp_folds.of_agent(agent)
    spoken(acp_folds.DIALECT, opening, data[1:])


AGENTS: Final = ("", *sorted({acp_folds.agent_of(each) for each in acp_folds.recordings()}))


def acp_seeds() -> Iterable[bytes]:
    for recording in acp_folds.recordings():
        yield bytes([AGENTS.index(acp_folds.agent_of(recording))]) + recording.read_bytes()


def recorded(folder: str) -> Iterable[bytes]:
    for file in sorted((STREAMS / folder).glob("*.jsonl")):
        yield file.read_bytes()


def words_of(folder: str) -> tuple[bytes, ...]:
    """Every name and word of the recordings, in quotes."""
    found: set[bytes] = set()
    for data in recorded(folder):
        found |= set(re.findall(rb'"[A-Za-z_/$]{2,40}"', data))
    return tuple(sorted(found))


def command(data: bytes) -> None:
    """Plain output: however it is cut into pieces, the same is heard, and the end is the result."""
    with tempfile.TemporaryDirectory(dir=_MEMORY) as place:
        whole, pieces = (str(Path(place, name)) for name in ("whole", "pieces"))
        Path(whole).write_bytes(data)
        at_once, signals = _read(whole, [data])
        in_pieces, again = _read(pieces, _cut(data))
    assert at_once == in_pieces
    assert signals[-1:] == again[-1:]


_MEMORY: Final = "/dev/shm" if Path("/dev/shm").is_dir() else None


def _cut(data: bytes) -> list[bytes]:
    third = max(len(data) // 3, 1)
    return [data[at : at + third] for at in range(0, len(data), third)]


def _read(path: str, pieces: Sequence[bytes]) -> tuple[list[OutputItem], list[Signal]]:
    heard, items, signals = Heard(), list[OutputItem](), list[Signal]()
    output = Output(path, f"{path}.err", AttemptId("r-1#1"), cursor=0, positions={})
    Path(path).write_bytes(b"")

    def take(seen: Iterable[Any]) -> None:
        for each, _ in seen:
            if isinstance(each, OutputBatch):
                heard.items(each.items)
                items.extend(each.items)
            else:
                signal = each if isinstance(each, Signal) else each.seen
                heard.signal(signal)
                signals.append(signal)

    for piece in pieces:
        with Path(path).open("ab") as file:
            file.write(piece)
        while True:
            seen, more = output.read()
            take(seen)
            if not more:
                break
    take(output.rest(result_before=False))
    assert output.fed.out == Path(path).stat().st_size
    return items, signals


def events(data: bytes) -> None:
    """Lines that a plain program may print to say more: each alone."""
    heard = Heard()
    for number, line in enumerate(data.split(b"\n")):
        event = event_of(line)
        if event is None:
            continue
        heard.items([output_item_of(event)])
        signal = signal_of(event, key=f"k{number}")
        if signal is not None:
            heard.signal(signal)


def event_seeds() -> Iterable[bytes]:
    yield from recorded("llm")
    forms: tuple[dict[str, Any], ...] = (
        {"subagents": "result", "text": "done", "isError": True, "error": "no", "retryAfterMs": 5},
        {"subagents": "report", "summary": "s", "status": "partial", "confidence": "low",
         "artifacts": [{"path": "a", "description": "b"}], "blockers": ["x"], "warnings": ["y"]},
        {"subagents": "usage", "tokensIn": 5, "tokensOut": 7, "costUsd": 0.25},
        {"subagents": "progress", "phase": "tests", "percentComplete": 20},
        {"subagents": "tool", "name": "Bash", "id": "1", "status": "ended", "exitCode": 1,
         "input": {"command": "cd a && git commit -m 'x'"}, "output": "1 failed", "durationMs": 3},
        {"subagents": "tool", "name": "TodoWrite", "input": {"todos": [{"content": "a"}]}},
        {"subagents": "text", "text": "hello"},
        {"subagents": "thinking", "text": "hm"},
        {"subagents": "error", "text": "429", "api": True, "retry": "2/5", "status": 429},
        {"subagents": "system", "text": "compacted", "waitsMs": 100},
        {"subagents": "context", "tokens": 150_000, "window": 200_000, "model": "m"},
        {"subagents": "session", "sessionId": "s-1"},
    )  # fmt: skip
    yield b"\n".join(json.dumps(each).encode() for each in forms)
    for each in forms:
        yield json.dumps(each).encode()


def command_seeds() -> Iterable[bytes]:
    yield b"plain\nlines\r\nprogress 1%\rprogress 2%\r\n\x1b[31mred\x1b[0m\nno end"
    yield b"\xff\xfe\0 odd bytes \xe2\x82\n" + "größer 🙂\n".encode() * 20
    yield from list(event_seeds())[-13:-12]
    yield b'text\n{"subagents":"result","text":"x"}\nmore text\n'


def tools(data: bytes) -> None:
    """Commands and what they print, as the detectors read them."""
    line, _, output = data.decode("utf-8", "replace").partition("\n")
    shown = {"subagents": "tool", "name": "Bash", "id": "1", "exitCode": 1, "output": output}
    events(json.dumps({**shown, "input": {"command": line}}).encode())


def tool_seeds() -> Iterable[bytes]:
    for file in sorted(TOOL_OUTPUTS.glob("*.json")):
        form = json.loads(file.read_bytes())
        said = [each for each in form.values() if isinstance(each, str)]
        yield "\n".join(said).encode()
    yield b"set -e; cd 'a b' && FOO=$(x) make -j4 test 2>&1 | tee log || true # no\n3 failed, 1 passed"
    yield b"git commit -m \"$(cat <<'EOF'\nfix\nEOF\n)\"\n[main 1234567] fix\n 1 file changed"


_Check = Callable[[bytes], None]


def _dialect(dialect: Dialect[Any], opening: Opening) -> _Check:
    return partial(spoken, dialect, opening)


WORKER_TARGETS: Final = (
    Target(
        "claude", "Claude Code's stream-json",
        _dialect(claude_folds.DIALECT, claude_folds.OPENING),
        partial(recorded, "claude"), words_of("claude"), STREAM_S,
    ),
    Target(
        "codex", "Codex's app-server, JSON-RPC by lines",
        _dialect(codex_folds.CODEX, codex_folds.opening()),
        partial(recorded, "codex"), words_of("codex"), STREAM_S,
    ),
    Target("acp", "agents of the Agent Client Protocol", acp, acp_seeds, words_of("acp"), STREAM_S),
    Target(
        "llm", "our own agent's lines", _dialect(llm_folds.LLM, llm_folds.opening()),
        event_seeds, words_of("llm"), STREAM_S,
    ),
    Target("command", "output of plain programs, in pieces", command, command_seeds),
    Target("tools", "shell commands and what they print", tools, tool_seeds),
)  # fmt: skip
