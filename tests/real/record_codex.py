"""Records what the real Codex writes: tests/data/streams/codex, one file for each scene.

python tests/real/record_codex.py [SCENE...]

The dialect itself drives the program, and a scripted model answers. What differs from run to run,
and from machine to machine, is replaced: ids, times, paths.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.e2e.scripted_model import Fail, Say, Script, ScriptedModel, Tokens, Use
from tests.real.codex_setup import files, patch, shell
from tests.real.install import found

from subagents.domain.run.values import AttemptId, RunId, replace
from subagents.extensions.codex.codex import CodexDialect
from subagents.extensions.codex.codex_turn import CodexState
from subagents.extensions.conversation.dialect import InputLine, Opening

STREAMS: Final = Path(__file__).parents[1] / "data" / "streams" / "codex"
CODEX: Final = CodexDialect()
SCENE_S: Final = 60.0
YEAR_2026_MS: Final = 1_767_225_600_000
SERVER: Final = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    kind, params = asked["method"], asked.get("params", {})
    result = {}
    if kind == "initialize":
        result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "subagents", "version": "1"}}
    elif kind == "tools/list":
        schema = {"type": "object", "properties": {"text": {"type": "string"}}}
        result = {"tools": [{"name": name, "description": name, "inputSchema": schema}
                            for name in ("report", "spawn")]}
    elif kind == "tools/call":
        result = {"content": [{"type": "text", "text": "called " + params["name"]}],
                  "isError": params["name"] == "spawn"}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""
"""An MCP server in place of ours: a tool that works, and one that fails."""


@dataclass(frozen=True, slots=True)
class Scene:
    """One turn."""

    script: Script
    opening: Mapping[str, Any] = field(default_factory=dict)
    after: str = ""
    """Of the scene whose session it continues."""
    when: Callable[[bytes, CodexState], bool] = lambda _line, _state: False
    send: Callable[[CodexState], InputLine | None] = lambda _state: None
    """Sent once, ``when`` a line and the state after it are so."""
    has_server: bool = False
    is_logged_in: bool = True


def _at_command(line: bytes, _state: CodexState) -> bool:
    return b'"item/started"' in line and b'"commandExecution"' in line


NO_SHELL: Final = Use("exec_command", {"cmd": "echo hi"}, is_declared=False)

SCENES: Final[dict[str, Scene]] = {
    "text": Scene([Say("All done.", thinking="hmm", tokens=Tokens(90, 50, cached=10))]),
    "tools": Scene(
        [
            Use(
                "exec_command", shell("echo hi; sleep 0.1; exit 3").arguments, text="I will run it"
            ),
            patch("hello.txt", "hi"),
            (Use("report", {"text": "half"}), Use("spawn", {"text": "boom"})),
            Say("bye"),
        ],
        has_server=True,
    ),
    "resume": Scene([Say("again", tokens=Tokens(200, 5))], after="text"),
    "steer": Scene(
        [
            shell("sleep 1; echo one"),
            lambda seen: Say("steered" if "turn left" in seen.seen else "not steered"),
        ],
        when=_at_command,
        send=lambda state: CODEX.steer(state, "turn left", key="k1"),
    ),
    "steer-too-late": Scene(
        [Say("first")],
        when=lambda _line, state: state.is_over,
        send=lambda state: CODEX.steer(replace(state, is_over=False), "turn left", key="k1"),
    ),
    "interrupt": Scene(
        [Use("exec_command", shell("sleep 301").arguments, text="I sleep"), Say("never")],
        when=_at_command,
        send=lambda state: CODEX.interrupt(state, key="i1"),
    ),
    "limit": Scene([Fail(429, times=99), Say("never")]),
    "failed": Scene([Fail(500, times=99), Say("never")]),
    "retried": Scene([Fail(500, times=2), Say("ok")]),
    "refused": Scene([Fail(400), Say("never")]),
    "sub-agents": Scene(
        [
            Use("spawn_agent", {"message": "script:child"}),
            lambda seen: Use("wait_agent", {"targets": seen.found(r"[0-9a-f]{8}-[0-9a-f-]{27}")}),
            Say("parent"),
        ],
        {"model": "unheard-of"},
    ),
    "unknown-session": Scene([], {"session_id": "01a201ef-fb9e-7362-aead-510b1dc5c2ff"}),
    "not-logged-in": Scene([], is_logged_in=False),
    "bridge-missing": Scene([], {"bridge": ("/nonexistent/bridge",)}),
    "scoped": Scene(
        [NO_SHELL, lambda seen: Say(seen.results[-1])], {"tools": ("apply_patch",)}, has_server=True
    ),
    "scoped-read": Scene(
        [
            patch("hello3.txt", "hi"),
            shell("touch zz"),
            lambda seen: Say(" ".join(seen.results)),
        ],
        {"tools_deny": ("Edit", "Task", "WebSearch")},
    ),
}


def main(names: list[str]) -> int:
    """Record the named scenes, or all of them."""
    wanted = names or list(SCENES)
    STREAMS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=Path.home(), prefix="codex-streams-") as root:
        for name in wanted:
            lines = list(recorded(name, Path(root)))
            (STREAMS / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
            print(f"{name}: {len(lines)} lines")  # noqa: T201
    return 0


def recorded(name: str, root: Path) -> Iterator[str]:
    """The cleaned lines of one scene."""
    scene = SCENES[name]
    work = root / "project"
    work.mkdir(exist_ok=True)
    scripts = {name: scene.script, "child": [Say("child")]}
    with ScriptedModel(scripts) as model:
        home = root / ("setup" if scene.is_logged_in else "nobody") / "codex"
        home.mkdir(parents=True, exist_ok=True)
        if scene.is_logged_in:
            files(model.url, home.parent)
        session = (root / f"{scene.after}.session").read_text() if scene.after else None
        lines, state = _played(_opening(name, scene, work, root, session), scene, home)
    (root / f"{name}.session").write_text(state.thread_id or "")
    places = {str(home): "/home/ada/.codex", str(work): "/home/ada/project", str(root): "/home/ada"}
    return _cleaned(lines, places)


def _opening(name: str, scene: Scene, work: Path, root: Path, session: str | None) -> Opening:
    server = root / "server.py"
    server.write_text(SERVER)
    facts: dict[str, Any] = {
        "model": "gpt-5.5",
        "session_id": session,
        "bridge": (sys.executable, str(server)) if scene.has_server else (),
        **scene.opening,
    }
    return Opening(
        attempt_id=AttemptId("r-abcdefghij#1"),
        run_id=RunId("r-abcdefghij"),
        number=1,
        turn=1,
        message=f"script:{name}",
        system_prompt="You are a worker.",
        cwd=str(work),
        session_uuid="11111111-2222-4333-8444-555555555555",
        options={"command": list(found("codex") or ("codex",))},
        **facts,
    )


def _played(opening: Opening, scene: Scene, home: Path) -> tuple[list[bytes], CodexState]:
    """What the program wrote until it ended by itself, and what its dialect made of it."""
    invocation = CODEX.invocation(
        opening, directory="/attempts/r-abcdefghij/1", path=os.environ["PATH"]
    )
    program = subprocess.Popen(
        invocation.argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        # Nothing of the recorder's own: what its shell says at a start is not for others to read.
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(home.parent),
            "CODEX_HOME": str(home),
            "SCRIPTED_KEY": "x",
        },
        cwd=opening.cwd,
    )
    assert program.stdin is not None
    assert program.stdout is not None
    bound = threading.Timer(SCENE_S, program.kill)
    bound.start()
    first = CODEX.begin(opening)
    state, lines, sent = first.state, [], None
    input_lines = list(first.input_lines)
    with program:
        while True:
            for input_line in input_lines:
                program.stdin.write(input_line.line + b"\n")
            program.stdin.flush()
            line = program.stdout.readline()
            if not line:
                break
            lines.append(line)
            step = CODEX.read_line(state, line.rstrip(b"\n"), now_ms=None)
            state, input_lines = step.state, list(step.input_lines)
            if sent is None and scene.when(line, state):
                sent = scene.send(state)
                input_lines += [] if sent is None else [sent]
            if state.is_over and (sent is None or "k1" in state.tells or sent.key != "k1"):
                break
        program.stdin.close()
        lines += program.stdout.readlines()
    bound.cancel()
    return lines, state


def _cleaned(lines: list[bytes], places: Mapping[str, str]) -> Iterator[str]:
    ids: dict[str, str] = {}

    def numbered(match: re.Match[str]) -> str:
        number = len(ids) + 1
        return ids.setdefault(match[0], f"{number:08d}-0000-7000-8000-{number:012d}")

    for line in lines:
        text = line.decode()
        for path, shown in places.items():
            text = text.replace(path, shown)
        text = re.sub(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", numbered, text)
        text = re.sub(r"(?<=At\":)\d{10}\b", str(YEAR_2026_MS // 1000), text)
        text = re.sub(r"(?<=AtMs\":)\d{7}(\d{6})\b", rf"{YEAR_2026_MS // 1_000_000}\g<1>", text)
        text = re.sub(r'"serverName":"[^"]*"', '"serverName":"host"', text)
        message = json.loads(text)
        if message.get("id") == "config":
            message["result"] = {"config": _kept(message["result"]["config"])}
        yield json.dumps(message, separators=(",", ":"), ensure_ascii=False)


def _kept(config: dict[str, Any]) -> dict[str, Any]:
    """Of the whole configuration, what is looked at."""
    return {
        name: config.get(name) for name in ("developer_instructions", "mcp_servers", "projects")
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
