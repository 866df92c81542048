"""Records what the real Claude Code says, as the tests read it: python record.py [NAME...]

Run from the repository, with its environment; see README.md beside this file. Everything real but
the model, which follows a script.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

HERE: Final = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[3]))

from tests.e2e.scripted_model import Fail, Say, Script, ScriptedModel, Tokens, Use, Wait  # noqa: E402

from subagents.domain.run.values import AttemptId, RunId  # noqa: E402
from subagents.extensions.claude.claude_code import ClaudeDialect  # noqa: E402
from subagents.extensions.claude.claude_state import ClaudeState  # noqa: E402
from subagents.extensions.conversation.dialect import InputLine, Opening  # noqa: E402

SESSION: Final = "11111111-2222-4333-8444-555555555555"
BOUND_S: Final = 60.0
LONG: Final = "touch begun; tail -f /dev/null --pid=$PPID"
"""Goes on until it or the program is ended; a bare ``sleep`` is refused by the program."""

Document = dict[str, Any]


class Recording(NamedTuple):
    """One file: what the worker is told, and what is done to it."""

    script: Script
    more: dict[str, Script] = {}
    options: dict[str, object] = {}
    env: dict[str, str] = {}
    tools: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()
    on: tuple[tuple[str, str], ...] = ()
    """``(what an event's line holds, what is done then)``, in this order."""
    model: str | None = None
    before: str | None = None
    """A recording whose session this one goes on with."""


RECORDINGS: Final[dict[str, Recording]] = {
    "text": Recording([Say("The answer is 42.")]),
    "tools": Recording(
        [
            Use("Bash", {"command": "echo one; echo two >&2"}, text="I look."),
            Use("Bash", {"command": "exit 3"}),
            Use("Write", {"file_path": "out.txt", "content": "hello"}),
            Use("Read", {"file_path": "out.txt"}),
            Say("Written."),
        ]
    ),
    "parallel": Recording(
        [
            (Use("Bash", {"command": "echo a"}), Use("Bash", {"command": "echo b; exit 1"})),
            Say("Both ran."),
        ]
    ),
    "thinking": Recording([Say("Done thinking.", thinking="Let me see. Two and two is four.")]),
    "denied": Recording(
        [
            Use("Bash", {"command": "touch x"}, is_declared=False),
            Use("Write", {"file_path": ".claude/settings.json", "content": "{}"}),
            Say("I could not."),
        ],
        deny=("exec_command",),
    ),
    "subagent": Recording(
        [
            Use(
                "Agent",
                {"description": "look", "prompt": "script:inner", "subagent_type": "Explore"},
            ),
            Say("It said so."),
        ],
        more={"inner": [Use("Bash", {"command": "echo inside"}), Say("I am the inner one.")]},
    ),
    "background": Recording(
        [
            Use("Bash", {"command": "sleep 0.3; echo over", "run_in_background": True}),
            Use(
                "Agent",
                {"description": "look", "prompt": "script:inner", "subagent_type": "Explore"},
            ),
            Say("Both are under way."),
            Say("Both came back."),
        ],
        more={"inner": [Use("Bash", {"command": "sleep 0.8; echo inside"}), Say("Inner.")]},
        options={"background": True},
    ),
    "retry": Recording([Fail(529, times=2), Fail(429, retry_after=1), Say("At last.")]),
    "limit": Recording([Fail(429, times=None)], env={"CLAUDE_CODE_MAX_RETRIES": "1"}),
    "refused": Recording([Fail(400, times=None)]),
    "max-turns": Recording(
        [Use("Bash", {"command": "echo 1"}, text="First."), Say("never")],
        options={"max_turns": 1},
    ),
    "max-budget": Recording(
        [Use("Bash", {"command": "echo 1"}), Say("never")], options={"max_budget_usd": 0.0001}
    ),
    "interrupted": Recording(
        [Use("Bash", {"command": LONG}, text="It takes long."), Say("never")],
        on=(("tool_use", "interrupt"),),
    ),
    "interrupted-early": Recording([Say("never")], on=(("", "interrupt"),)),
    "interrupted-queued": Recording(
        [Use("Bash", {"command": LONG}), Say("never")],
        on=(("tool_use", "tell:script:text not any more"), ('"queued"', "interrupt")),
    ),
    "steered": Recording(
        [
            Use("Bash", {"command": "sleep 0.7; echo over"}),
            lambda asked: Say("Blue it is." if "make it blue" in asked.seen else "Not told."),
        ],
        on=(("tool_use", "tell:make it blue"),),
    ),
    "not-compacted": Recording(
        [
            Use("Bash", {"command": "echo 1"}, tokens=Tokens(1000, 10)),
            Use("Bash", {"command": "echo 2"}, tokens=Tokens(180_000, 10)),
            Say("It takes this for no summary."),
        ],
        model="claude-sonnet-4-5",
        options={"args": ["--autocompact=100000"]},
    ),
    "late": Recording(
        [Wait("end"), Say("The first answer.")],
        more={"other": [Say("The second answer.")]},
        on=(('"init"', "tell:now script:other"), ('"queued"', "open:end")),
    ),
    "resumed": Recording([Say("I remember.")], before="text"),
    "repaired": Recording(
        [lambda asked: Say(f"Outcome unknown: {'outcome is unknown' in asked.seen}.")],
        before="killed",
    ),
    "no-session": Recording([Say("never")], before=""),
    "not-logged-in": Recording(
        [Say("never")], env={"ANTHROPIC_API_KEY": "", "ANTHROPIC_BASE_URL": ""}
    ),
    "killed": Recording(
        [Use("Bash", {"command": LONG}, text="It takes long."), Say("never")],
        on=(("tool_use", "kill"),),
    ),
}


class Place:
    """A directory, a model and the program, for one recording."""

    def __init__(self, root: Path, name: str, model: ScriptedModel) -> None:
        self.root, self.name, self.model = root, name, model
        self.recording = RECORDINGS[name]
        self.dialect = ClaudeDialect()
        self.lines: list[bytes] = []

    def run(self) -> ClaudeState:
        """The program from its start to its end; returns what its lines came to."""
        recording = self.recording
        opening = self.opening(f"script:{self.name} please")
        work = self.root / "project"
        work.mkdir(exist_ok=True)
        directory = self.root / self.name
        directory.mkdir()
        path = os.environ["PATH"]
        invocation = self.dialect.invocation(opening, directory=str(directory), path=path)
        for file, data in invocation.files.items():
            (directory / file).write_bytes(data)
        env = {
            "PATH": path,
            "HOME": str(self.root),
            "CLAUDE_CONFIG_DIR": str(self.root / "config"),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "ANTHROPIC_BASE_URL": self.model.url,
            "ANTHROPIC_API_KEY": "x",
            **invocation.env,
            **recording.env,
        }
        process = subprocess.Popen(
            invocation.argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={key: value for key, value in env.items() if value},
            cwd=work,
        )
        killer = threading.Timer(BOUND_S, process.kill)
        killer.start()
        try:
            return self._converse(process, opening)
        finally:
            killer.cancel()
            process.kill()
            process.wait()

    def opening(self, message: str) -> Opening:
        recording = self.recording
        before = {None: None, "": "99999999-0000-4000-8000-000000000000"}
        return Opening(
            attempt_id=AttemptId("r-recorded#1"),
            run_id=RunId("r-recorded"),
            number=1,
            turn=1 if recording.before is None else 2,
            message=message,
            system_prompt="You are a worker.",
            cwd=str(self.root / "project"),
            session_uuid=SESSION,
            session_id=before.get(recording.before, SESSION),
            model=recording.model,
            tools=recording.tools,
            tools_deny=recording.deny,
            options=recording.options,
        )

    def _converse(self, process: "subprocess.Popen[bytes]", opening: Opening) -> ClaudeState:
        assert process.stdin is not None
        assert process.stdout is not None
        step = self.dialect.begin(opening)
        state, to_do = step.state, list(self.recording.on)
        self._send(process, step.input_lines)
        for line in process.stdout:
            self.lines.append(line.rstrip(b"\n"))
            step = self.dialect.read_line(state, self.lines[-1], now_ms=None)
            state = step.state
            self._send(process, step.input_lines)
            if to_do and to_do[0][0].encode() in line:
                self._do(process, state, to_do.pop(0)[1])
            if self.dialect.is_done(state) and not process.stdin.closed:
                process.stdin.close()
        return state

    def _do(self, process: "subprocess.Popen[bytes]", state: ClaudeState, what: str) -> None:
        name, _, rest = what.partition(":")
        input_line: InputLine | None = None
        match name:
            case "tell":
                input_line = self.dialect.steer(state, rest, key="steer-1")
            case "interrupt":
                input_line = self.dialect.interrupt(state, key="stop-1")
            case "open":
                self.model.open(rest)
            case "kill":
                due = time.monotonic() + BOUND_S
                while not (self.root / "project" / "begun").exists() and time.monotonic() < due:
                    time.sleep(0.02)
                process.kill()
        self._send(process, () if input_line is None else (input_line,))

    def _send(self, process: "subprocess.Popen[bytes]", input_lines: tuple[InputLine, ...]) -> None:
        assert process.stdin is not None
        for input_line in input_lines:
            process.stdin.write(input_line.line + b"\n")
            process.stdin.flush()


def cleaned(line: bytes, root: Path) -> bytes:
    """Without the paths and ports of this machine."""
    text = line.decode()
    slug = re.sub(r"[^a-zA-Z0-9]", "-", str(root))
    swaps: list[tuple[str, str | Callable[[re.Match[str]], str]]] = [
        (re.escape(str(root)), "/place"),
        (re.escape(slug), "-place"),
        (r"/tmp/cc-socks/\d+\.sock", "/tmp/cc-socks/1.sock"),
        (r"/tmp/claude-\d+/", "/tmp/claude-1/"),
        (r"127\.0\.0\.1:\d+", "127.0.0.1:1"),
    ]
    for pattern, put in swaps:
        text = re.sub(pattern, put, text)
    return json.dumps(json.loads(text), ensure_ascii=False).encode() if text else b""


def main(names: list[str]) -> None:
    scripts: dict[str, Script] = {}
    for name, recording in RECORDINGS.items():
        scripts |= {name: recording.script, **recording.more}
    with tempfile.TemporaryDirectory() as made, ScriptedModel(scripts) as model:
        for name in names or RECORDINGS:
            root = Path(made, "place")
            root.mkdir(exist_ok=True)
            before = RECORDINGS[name].before
            if before is None:
                root = Path(made, name)
                root.mkdir()
            elif before:
                root = Path(made, f"{before}-{name}")
                root.mkdir()
                Place(root, before, model).run()
            place = Place(root, name, model)
            state = place.run()
            found = b"".join(cleaned(line, root) + b"\n" for line in place.lines)
            (HERE / f"{name}.jsonl").write_bytes(found)
            sys.stdout.write(f"{name}: {len(place.lines)} lines, over={state.is_over}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
