"""Codex in a place of its own: its configuration, and how its model asks for things."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Final

from tests.e2e.program_setups import ProgramSetup
from tests.e2e.scripted_model import Use
from tests.real.install import found

CONFIG: Final = """
model_provider = "scripted"
check_for_update_on_startup = false

[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
request_max_retries = 1
stream_max_retries = 1
"""
SHELL_WAIT_MS: Final = 30_000
"""So long Codex lets a command hold up the turn."""


def files(url: str, root: Path) -> None:
    """``$CODEX_HOME``: nobody is logged in there, and nobody needs to be."""
    (root / "codex").mkdir(parents=True, exist_ok=True)
    (root / "codex" / "config.toml").write_text(CONFIG.format(url=url))


def patch(path: str, text: str) -> Use:
    """A new file, as Codex's models write one."""
    return Use("apply_patch", {"input": _patch(path, text)})


def _patch(path: str, text: str) -> str:
    lines = "".join(f"+{line}\n" for line in text.split("\n"))
    return f"*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch\n"


def shell(line: str) -> Use:
    return Use("exec_command", {"cmd": line, "login": False, "yield_time_ms": SHELL_WAIT_MS})


def missing() -> str | None:
    return None if found("codex") is not None else "codex is not installed: make test-real"


CODEX: Final = ProgramSetup(
    name="codex",
    runtime="codex",
    edit=patch,
    shell=shell,
    shell_tool="exec_command",
    options={"command": list(found("codex") or ("codex",))},
    # Codex makes no helper programs for its sandbox when its home is below the directory for
    # temporary files, and there the home of a test is.
    env=lambda _url, root: {
        "CODEX_HOME": str(root / "codex"),
        "SCRIPTED_KEY": "x",
        "TMPDIR": str(root / "codex" / "tmp"),
    },
    prepare=files,
    model="gpt-5.5",
    missing=missing,
)


def in_code(expression: str) -> Use:
    """What the newest models do: their one tool runs JavaScript, and the others are in there."""
    return Use("exec", {"input": f"text(JSON.stringify({expression}))"})


CODING: Final = replace(
    CODEX,
    model="gpt-6.1-sol",
    edit=lambda path, text: in_code(f"await tools.apply_patch({json.dumps(_patch(path, text))})"),
    shell=lambda line: in_code(f"await tools.exec_command({json.dumps(shell(line).arguments)})"),
)
"""A model that writes code for its calls."""
LOOSE: Final = replace(CODEX, options={**CODEX.options, "sandbox": "danger-full-access"})
"""The same without a sandbox."""
