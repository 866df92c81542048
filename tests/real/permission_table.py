"""What workers can really do, by who called: real programs on both sides, one table in the docs.

python -m tests.real.permission_table [--write] [--without-bubblewrap] [CALLER...]

Each caller starts one worker of every runtime in its own permission mode, and each worker tries
what it can: read a file of the project, write in the project and in the home directory (with its
tool for it and with its shell), run a command, and reach the network from it. The model is scripted
on both sides; what happened is looked up on the disk and at a socket.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from tests.e2e.claude_place import program as claude_program
from tests.e2e.live_home import DEFAULTS, LiveHome, live_home
from tests.e2e.program_setups import CLAUDE, LLM, ProgramSetup
from tests.e2e.scripted_model import Conversation, Say, Script, ScriptedModel, Use
from tests.real.acp_programs import SETUPS as AGENTS
from tests.real.codex_setup import CODEX
from tests.real.install import found

PAGE: Final = Path(__file__).parents[2] / "docs" / "permissions.md"
BEGIN: Final = "<!-- measured: python -m tests.real.permission_table --write -->\n"
END: Final = "<!-- end -->\n"
CALL_S: Final = 240.0
SECRET: Final = "seen-in-the-project"
RAN: Final = "the-shell-ran"
READ, INSIDE, OUTSIDE, SHELL, NETWORK = "read", "project", "home", "shell", "net"
COLUMNS: Final = (READ, INSIDE, OUTSIDE, SHELL, NETWORK)

Document = dict[str, Any]
Row = Mapping[str, frozenset[str] | str]
"""Worker → what it could do, or why it was refused."""


def workers() -> dict[str, ProgramSetup]:
    """Everything that is here and can work."""
    setups = (
        CLAUDE,
        CODEX,
        *(AGENTS[name] for name in ("opencode", "gemini", "goose", "qwen")),
        LLM,
    )
    return {setup.name: setup for setup in setups if setup.missing() is None}


READS: Final[Mapping[str, Callable[[str], Use]]] = {
    "claude": lambda path: Use("Read", {"file_path": path}),
    "opencode": lambda path: Use("read", {"filePath": path}),
    "gemini": lambda path: Use("read_file", {"file_path": path}),
    "qwen": lambda path: Use("read_file", {"file_path": path}),
    "llm": lambda path: Use("read", {"path": path}),
}
"""Those that read with a tool of their own; the others read with their shell."""


@dataclass(frozen=True, slots=True)
class Caller:
    """An agent program in one of its permission modes."""

    name: str
    argv: Callable[["Place"], Sequence[str]]
    most: str
    """The level that its workers may have at most."""
    network: bool = True
    program: str = ""
    """Which one must be installed; "" = Claude Code."""
    env: Mapping[str, str] = field(default_factory=dict)

    def is_here(self) -> bool:
        return found(self.program) is not None if self.program else claude_program() is not None


@dataclass(frozen=True, slots=True)
class Place:
    """A daemon, a model, a project and a home."""

    home: LiveHome
    model: ScriptedModel
    root: Path
    port: int
    reached: set[str]

    @property
    def project(self) -> Path:
        return self.home.work

    def server(self) -> Document:
        env = {"SUBAGENTS_HOME": str(self.root / "e2e" / "home")}
        return {"command": sys.executable, "args": ["-m", "subagents", "mcp"], "env": env}


def _claude(mode: str) -> Callable[[Place], Sequence[str]]:
    def argv(place: Place) -> Sequence[str]:
        config = place.root / "mcp.json"
        config.write_text(json.dumps({"mcpServers": {"subagents": place.server()}}))
        return [
            *(str(claude_program()), "-p", "script:caller", "--permission-mode", mode),
            *("--allowedTools", "mcp__subagents", "--mcp-config", str(config)),
            *("--strict-mcp-config", "--setting-sources", "user"),
        ]

    return argv


def _codex(sandbox: str) -> Callable[[Place], Sequence[str]]:
    def argv(place: Place) -> Sequence[str]:
        server = place.server()
        table = {
            "command": json.dumps(server["command"]),
            "args": json.dumps(server["args"]),
            "env": "{ "
            + ", ".join(f"{k} = {json.dumps(v)}" for k, v in server["env"].items())
            + " }",
            "default_tools_approval_mode": '"approve"',
            "required": "true",
            "tool_timeout_sec": "600",
        }
        sets = [
            part
            for key, value in table.items()
            for part in ("-c", f"mcp_servers.subagents.{key}={value}")
        ]
        return [
            *(
                *(found("codex") or ()),
                "exec",
                "-m",
                "gpt-5.4",
                "--skip-git-repo-check",
                "-s",
                sandbox,
            ),
            *("-C", str(place.project), *sets, "script:caller"),
        ]

    return argv


def _gemini(mode: str) -> Callable[[Place], Sequence[str]]:
    def argv(place: Place) -> Sequence[str]:
        directory = place.root / "e2e" / ".gemini"
        directory.mkdir(exist_ok=True)
        settings = {
            "security": {
                "auth": {"selectedType": "gemini-api-key"},
                "folderTrust": {"enabled": False},
            },
            "general": {"enableAutoUpdate": False},
            "privacy": {"usageStatisticsEnabled": False},
            "mcpServers": {"subagents": {**place.server(), "trust": True}},
        }
        (directory / "settings.json").write_text(json.dumps(settings))
        return [
            *(*(found("gemini") or ()), "-m", "gemini-2.5-pro", "-p", "script:caller"),
            *("--approval-mode", mode, "--skip-trust"),
        ]

    return argv


def _opencode(*more: str) -> Callable[[Place], Sequence[str]]:
    def argv(place: Place) -> Sequence[str]:
        file = place.root / "setup-opencode" / "opencode.json"
        config = json.loads(file.read_text())
        server = place.server()
        config["mcp"] = {
            "subagents": {
                "type": "local",
                "command": [server["command"], *server["args"]],
                "environment": server["env"],
                "enabled": True,
            }
        }
        own = place.root / "caller-opencode.json"
        own.write_text(json.dumps(config))
        return [*(found("opencode") or ()), "run", *more, "script:caller"]

    return argv


CALLERS: Final = (
    Caller("claude, plan", _claude("plan"), "read"),
    Caller("claude, default", _claude("default"), "read"),
    Caller("claude, acceptEdits", _claude("acceptEdits"), "write"),
    Caller(
        "claude, bypassPermissions", _claude("bypassPermissions"), "full", env={"IS_SANDBOX": "1"}
    ),
    Caller("codex, read-only", _codex("read-only"), "read", network=False, program="codex"),
    Caller(
        "codex, workspace-write", _codex("workspace-write"), "write", network=False, program="codex"
    ),
    Caller("codex, danger-full-access", _codex("danger-full-access"), "full", program="codex"),
    Caller("gemini, default", _gemini("default"), "read", program="gemini"),
    Caller("gemini, auto_edit", _gemini("auto_edit"), "write", program="gemini"),
    Caller("gemini, yolo", _gemini("yolo"), "full", program="gemini"),
    Caller("opencode, plan", _opencode("--agent", "plan"), "read", program="opencode"),
    Caller("opencode", _opencode(), "full", program="opencode"),
)


# -- one caller --------------------------------------------------------------------------------


@contextmanager
def place_of(root: Path, *, bubblewrap: bool = True, started: bool = True) -> Iterator[Place]:
    """Everything there for the length of the block; ``root`` is not below /tmp."""
    env = {} if bubblewrap else {"PATH": _without_bubblewrap(root / "bin")}
    reached: set[str] = set()
    with ScriptedModel({"nothing": [Say("nothing to do")]}) as model, _listener(reached) as port:
        config = [DEFAULTS]
        for name, setup in workers().items():
            own = root / f"setup-{name}"
            own.mkdir()
            setup.prepare(model.url, own)
            config.append(f'{setup.config(model.url, own)}access = "write"\n')
        config.append(
            '[agents.command]\nruntime = "command"\ncommand = ["bash", "-c", "{task}"]\n'
            'access = "write"\n'
        )
        text = "".join(config)
        with live_home(root, config=text, env=env, started=started) as home:
            (home.work / "there.txt").write_text(f"{SECRET}\n")
            yield Place(home, model, root, port, reached)


def _without_bubblewrap(directory: Path) -> str:
    """A PATH with everything but bubblewrap."""
    directory.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for file in Path(place).iterdir() if Path(place).is_dir() else ():
            link = directory / file.name
            if file.name != "bwrap" and not link.is_symlink():
                link.symlink_to(file)
    return str(directory)


@contextmanager
def _listener(reached: set[str]) -> Iterator[int]:
    """A port that remembers what was sent to it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        is_over = threading.Event()

        def serve() -> None:
            while not is_over.is_set():
                try:
                    connection, _ = server.accept()
                except OSError:
                    continue
                with connection:
                    connection.settimeout(2)
                    reached.update(connection.recv(200).decode("utf-8", "replace").split())

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            is_over.set()
            thread.join()


def attempt_line(place: Place, name: str) -> str:
    """The shell line that tries everything; each part whatever became of the others."""
    home = place.home.root
    return (
        f"echo {RAN}; cat {place.project}/there.txt; "
        f"echo x > {place.project}/sh-{name}; echo x > {home}/sh-{name}; "
        f"bash -c 'echo {name} > /dev/tcp/127.0.0.1/{place.port}'; true"
    )


def script_of(place: Place, setup: ProgramSetup) -> Script:
    """Every try is a turn, also with a tool that the request does not list."""
    name, home = setup.name, place.home.root
    uses = [
        setup.edit(str(place.project / f"tool-{name}"), "x"),
        setup.edit(str(home / f"tool-{name}"), "x"),
        *([READS[name](str(place.project / "there.txt"))] if name in READS else []),
        setup.shell(attempt_line(place, name)),
    ]
    return [*(replace(use, is_declared=False) for use in uses), _findings]


def _findings(seen: Conversation) -> Say:
    told = "\n".join(seen.results)
    return Say(" ".join(word for word in (SECRET, RAN) if _answered(told, word)) or "nothing")


def _answered(told: str, word: str) -> bool:
    """In what came out, not in an error that quotes the command."""
    lines = told.replace("\\n", "\n").splitlines()
    return any(word in line and "echo" not in line for line in lines)


def measure(caller: Caller, place: Place) -> Row:
    """One row: what each worker could do for that caller."""
    setups = workers()
    names = [*setups, "command"]
    for setup in setups.values():
        place.model.scripts[setup.name] = script_of(place, setup)
    tasks = {name: f"script:{name}" for name in setups}
    tasks["command"] = attempt_line(place, "command")
    place.model.scripts["caller"] = [
        *(
            Use("sessions_spawn", {"task": tasks[name], "agentId": name, "label": f"w-{name}"})
            for name in names
        ),
        Use("sessions_wait", {"until": "all", "timeoutSeconds": 120}),
        Say("all over"),
    ]
    call(caller, place)
    rows = {row["label"]: row for row in place.home.get("/v1/runs")["runs"]}
    if not rows:
        return dict.fromkeys(names, "no spawn")
    place.home.finish(*(row["runId"] for row in rows.values()))
    return {name: _found(place, name, rows.get(f"w-{name}")) for name in names}


def call(caller: Caller, place: Place) -> None:
    """Run the caller to its end; its model follows the script ``caller``."""
    env = {
        **{k: v for k, v in os.environ.items() if k in {"PATH", "LANG", "TERM", "USER"}},
        "HOME": str(place.home.root),
        "ANTHROPIC_BASE_URL": place.model.url,
        "ANTHROPIC_API_KEY": "x",
        "CLAUDE_CONFIG_DIR": str(place.root / "caller-claude"),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MCP_STARTUP_WAIT_MS": "20000",
        "CODEX_HOME": str(place.root / "setup-codex" / "codex"),
        "SCRIPTED_KEY": "x",
        "GEMINI_API_KEY": "k",
        "GOOGLE_GEMINI_BASE_URL": place.model.url,
        "GEMINI_CLI_NO_RELAUNCH": "true",
        "OPENCODE_CONFIG": str(place.root / "caller-opencode.json"),
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        **caller.env,
    }
    subprocess.run(
        caller.argv(place),
        cwd=place.project,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=CALL_S,
        check=False,
    )


def _found(place: Place, name: str, row: Document | None) -> frozenset[str] | str:
    if row is None:
        return "refused"
    run = place.home.show(row["runId"])
    told = run.get("result") or ""
    could = set()
    if SECRET in told:
        could.add(READ)
    if RAN in told:
        could.add(SHELL)
    for where, what in ((place.project, INSIDE), (place.home.root, OUTSIDE)):
        if (where / f"sh-{name}").exists() or (where / f"tool-{name}").exists():
            could.add(what)
    if name in place.reached:
        could.add(NETWORK)
    return frozenset(could)


def broken(caller: Caller, row: Row) -> list[str]:
    """What a worker could do that its caller could not."""
    found_: list[str] = []
    for name, could in row.items():
        if isinstance(could, str):
            continue
        beyond = {OUTSIDE} if caller.most == "write" else set()
        beyond |= {INSIDE, OUTSIDE} if caller.most == "read" else set()
        beyond |= set() if caller.network else {NETWORK}
        if could & beyond:
            found_.append(f"{caller.name}: {name} could {', '.join(sorted(could & beyond))}")
    return found_


def row_of(caller: Caller, *, bubblewrap: bool = True) -> Row:
    """Everything that it takes to measure one row; not below /tmp, which some may write."""
    with (
        tempfile.TemporaryDirectory(dir="/var/tmp", prefix="permissions-") as directory,
        place_of(Path(directory), bubblewrap=bubblewrap) as place,
    ):
        return measure(caller, place)


# -- the table -----------------------------------------------------------------------------------


def cell(could: frozenset[str] | str) -> str:
    """As in the table: what it could, in the order of the columns."""
    if isinstance(could, str):
        return could
    return ", ".join(each for each in COLUMNS if each in could) or "nothing"


def table(rows: Mapping[str, Row]) -> str:
    """Markdown: a row for each caller, a column for each worker."""
    names = list(next(iter(rows.values())))
    lines = ["| caller | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    lines += [
        f"| {caller} | " + " | ".join(cell(row.get(name, "–")) for name in names) + " |"
        for caller, row in rows.items()
    ]
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Print (and with ``--write`` keep) the table of these callers, or of all."""
    wanted = [each for each in arguments if not each.startswith("-")]
    rows: dict[str, Row] = {}
    worse: list[str] = []
    bare = "--without-bubblewrap" in arguments
    for caller in CALLERS:
        if not caller.is_here() or (wanted and caller.name not in wanted):
            continue
        rows[caller.name] = row = row_of(caller, bubblewrap=not bare)
        worse += broken(caller, row)
        sys.stdout.write(table({caller.name: row}))
        sys.stdout.flush()
    if "--write" in arguments:
        when = time.strftime("%Y-%m-%d", time.gmtime())
        text = PAGE.read_text()
        head, _, rest = text.partition(BEGIN)
        after = rest.partition(END)[2]
        PAGE.write_text(f"{head}{BEGIN}\n{table(rows)}\nMeasured on {when}.\n{END}{after}")
    sys.stdout.write("\n".join(worse) + "\n")
    return int(bool(worse))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
