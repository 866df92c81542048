"""Tries a server of ``[mcp_servers]`` as a worker's program would: started, greeted, asked for its
tools, and ended again. No model is asked. Blocking."""

import contextlib
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from subagents.config.settings import Settings
from subagents.domain.run.secret_reference import PREFIX, is_reference
from subagents.errors import SubagentsError
from subagents.extensions.mcp.bridge.bridge_rpc import decoded
from subagents.extensions.mcp.bridge.worker_above import TOKEN
from subagents.extensions.mcp.named_servers import McpServer, variables
from subagents.process_group import kill_group
from subagents.runtimes.process.secret_values import ask, last_words
from subagents.text import counted, one_line
from subagents.version import __version__

LIMIT_S: Final = 30.0
"""How long all of it may take; some servers are fetched when they start."""
NAMES_SHOWN: Final = 8
_HELLO: Final = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "subagents", "version": __version__},
}


class ServerFailed(Exception):
    """It did not do as a server must; the text says what, and has no secret of it."""


def tools_of(name: str, settings: Settings, environ: Mapping[str, str]) -> str:
    """What its tools are, in words: ``2 tools: read, write``.

    Args:
        name: The server's.
        settings: The user's own.
        environ: What it is started with, besides what its table says.

    Raises:
        ServerFailed: It cannot be used; says why.
    """
    try:
        given = variables((name,), settings.named(McpServer))
        names = [each.removeprefix(PREFIX) for each in given.values() if is_reference(each)]
        secrets = {PREFIX + each: ask(each, settings.secrets.get(each), environ) for each in names}
    except SubagentsError as error:
        raise ServerFailed(error.message) from error
    env = {**environ, TOKEN: "none", **{n: secrets.get(v, v) for n, v in given.items()}}
    argv = (sys.executable, "-P", "-m", "subagents", "mcp", f"--server={name}")
    with subprocess.Popen(
        argv,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        timer = threading.Timer(LIMIT_S, kill_group, (process.pid,))
        timer.start()
        try:
            return _asked(process)
        except ServerFailed as error:
            kill_group(process.pid)
            timed_out = f"it did not answer within {LIMIT_S:.0f} s" if not timer.is_alive() else ""
            _, complaint = process.communicate()
            text = timed_out or f"{error}{last_words(complaint)}"
            for value in secrets.values():
                text = text.replace(value, "[secret]")
            raise ServerFailed(one_line(text)) from error
        finally:
            timer.cancel()
            kill_group(process.pid)


def _asked(process: "subprocess.Popen[bytes]") -> str:
    _answer(process, 1, "initialize", _HELLO)
    _send(process, {"method": "notifications/initialized"})
    listed = _answer(process, 2, "tools/list", {}).get("tools")
    tools = listed if isinstance(listed, list) else []
    names = [str(each.get("name")) for each in tools if isinstance(each, dict)]
    shown = ", ".join(names[:NAMES_SHOWN]) + (", …" if len(names) > NAMES_SHOWN else "")
    return f"{counted(len(names), 'tool')}: {shown}" if names else "no tools"


def _answer(
    process: "subprocess.Popen[bytes]", id_: int, method: str, params: object
) -> dict[str, Any]:
    _send(process, {"id": id_, "method": method, "params": params})
    for line in process.stdout or ():
        message = decoded(line)
        if message.get("id") == id_ and "method" not in message:
            result = message.get("result")
            if isinstance(result, dict):
                return result
            error = message.get("error")
            said = error.get("message") if isinstance(error, dict) else "no result"
            raise ServerFailed(f"it answered {method} with an error: {said}")
    raise ServerFailed(f"it ended before it answered {method}")


def _send(process: "subprocess.Popen[bytes]", message: dict[str, object]) -> None:
    with contextlib.suppress(BrokenPipeError):  # the answer that does not come says so
        if process.stdin is not None:
            process.stdin.write(msgspec.json.encode({"jsonrpc": "2.0", **message}) + b"\n")
            process.stdin.flush()
