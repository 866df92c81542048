"""Every installed agent that speaks ACP, in a place of its own; rows as in ``program_setups``.

Home directories are the test's (``live_home``), so nobody is logged in and no own settings count.
"""

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from tests.e2e.claude_place import program as claude_program
from tests.e2e.program_setups import ProgramSetup
from tests.e2e.scripted_model import Use
from tests.real.install import found, node, place

Document = dict[str, Any]
Edit = Callable[[str, str], Use]
Shell = Callable[[str], Use]


def _missing(name: str) -> Callable[[], str | None]:
    return lambda: None if found(name) is not None else f"{name} is not installed: make test-real"


def _setup(
    name: str,
    *,
    edit: Edit,
    shell: Shell,
    env: Callable[[str, Path], Mapping[str, str]],
    prepare: Callable[[str, Path], None] = lambda _url, _root: None,
    model: str = "scripted",
    args: tuple[str, ...] = (),
) -> ProgramSetup:
    return ProgramSetup(
        name=name,
        runtime="acp",
        edit=edit,
        shell=shell,
        shell_tool="Bash",
        options={"agent": name, "command": list(found(name) or (name,)), "args": list(args)},
        env=env,
        prepare=prepare,
        model=model,
        missing=_missing(name),
    )


def _opencode_files(url: str, root: Path) -> None:
    models = {"scripted": {"name": "scripted", "limit": {"context": 200_000, "output": 8_192}}}
    models["scripted"]["cost"] = {"input": 3, "output": 15}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Scripted",
        "options": {"baseURL": f"{url}/v1", "apiKey": "k"},
        "models": models,
    }
    config: Document = {
        "autoupdate": False,
        "share": "disabled",
        "model": "scripted/scripted",
        "small_model": "scripted/scripted",
        "provider": {"scripted": provider},
        # What a user allows for good must not win over a run's scope.
        "permission": {"bash": "allow", "edit": "allow"},
    }
    (root / "opencode.json").write_text(json.dumps(config))


CODEX_CONFIG: Final = """
model = "gpt-5.4"
model_provider = "scripted"
check_for_update_on_startup = false

[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
"""


def _codex_files(url: str, root: Path) -> None:
    (root / "codex").mkdir()
    (root / "codex" / "config.toml").write_text(CODEX_CONFIG.format(url=url))


def _claude_env(url: str, root: Path) -> Mapping[str, str]:
    env = {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "x",
        "CLAUDE_CONFIG_DIR": str(root / "claude"),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    program = claude_program()
    return env if program is None else env | {"CLAUDE_CODE_EXECUTABLE": str(program)}


OPENCODE: Final = _setup(
    "opencode",
    edit=lambda path, text: Use("write", {"filePath": path, "content": text}),
    shell=lambda line: Use("bash", {"command": line, "description": "as the script says"}),
    env=lambda _url, root: {
        "OPENCODE_CONFIG": str(root / "opencode.json"),
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
    },
    prepare=_opencode_files,
)
CLAUDE_ACP: Final = _setup(
    "claude-agent-acp",
    edit=lambda path, text: Use("Write", {"file_path": path, "content": text}),
    shell=lambda line: Use("Bash", {"command": line, "description": "as the script says"}),
    env=_claude_env,
    model="sonnet",
)
GEMINI: Final = _setup(
    "gemini",
    edit=lambda path, text: Use("write_file", {"file_path": path, "content": text}),
    shell=lambda line: Use("run_shell_command", {"command": line}),
    env=lambda url, _root: {"GEMINI_API_KEY": "k", "GOOGLE_GEMINI_BASE_URL": url},
    model="gemini-2.5-pro",
)
QWEN: Final = _setup(
    "qwen",
    edit=lambda path, text: Use("write_file", {"file_path": path, "content": text}),
    shell=lambda line: Use("run_shell_command", {"command": line, "is_background": False}),
    env=lambda url, _root: {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"{url}/v1"},
    args=("--auth-type", "openai"),
)
GOOSE: Final = _setup(
    "goose",
    edit=lambda path, text: Use("write", {"path": path, "content": text}),
    shell=lambda line: Use("shell", {"command": line}),
    env=lambda url, _root: {
        "GOOSE_PROVIDER": "openai",
        "GOOSE_MODEL": "scripted",
        "OPENAI_HOST": url,
        "OPENAI_API_KEY": "k",
        "GOOSE_DISABLE_KEYRING": "1",
    },
)
CODEX_ACP: Final = _setup(
    "codex-acp",
    edit=lambda path, text: Use(
        "exec_command", {"cmd": f"printf '%s' '{text}' > {path}", "login": False}
    ),
    shell=lambda line: Use("exec_command", {"cmd": line, "login": False, "yield_time_ms": 30_000}),
    env=lambda _url, root: {"CODEX_HOME": str(root / "codex"), "SCRIPTED_KEY": "x"},
    prepare=_codex_files,
    model="gpt-5.4",
)

COPILOT: Final = _setup(
    "copilot",
    edit=lambda path, text: Use("create", {"path": path, "file_text": text}),
    shell=lambda line: Use("bash", {"command": line, "description": "as the script says"}),
    env=lambda url, root: {
        "COPILOT_HOME": str(root / "copilot"),
        "COPILOT_PROVIDER_BASE_URL": f"{url}/v1",
        "COPILOT_PROVIDER_API_KEY": "k",
    },
)
KILO: Final = _setup(
    "kilo",
    edit=OPENCODE.edit,
    shell=OPENCODE.shell,
    env=lambda _url, root: {
        "KILO_CONFIG": str(root / "opencode.json"),
        "KILO_DISABLE_MODELS_FETCH": "1",
    },
    prepare=_opencode_files,
)

OURS: Final = {"command": sys.executable, "args": ["-m", "subagents", "mcp"]}
"""Our server in the user's own configuration: these start none that a session names."""


def _written(file: Path, document: Document) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(document))


def _cline_files(url: str, root: Path) -> None:
    named = {"provider": "openai-compatible", "apiKey": "k", "model": "gpt-4o"}
    row = {"settings": {**named, "baseUrl": f"{url}/v1"}, "tokenSource": "manual"}
    row["updatedAt"] = "2026-11-29T20:30:48.866Z"
    providers = {"version": 1, "lastUsedProvider": "openai-compatible", "modes": {}}
    settings = root / "cline" / "settings"
    _written(settings / "providers.json", providers | {"providers": {"openai-compatible": row}})
    servers = {"subagents": {"transport": {"type": "stdio", **OURS}}}
    _written(settings / "cline_mcp_settings.json", {"mcpServers": servers})


CLINE: Final = _setup(
    "cline",
    edit=lambda path, text: Use(
        "apply_patch", {"input": f"*** Begin Patch\n*** Add File: {path}\n+{text}\n*** End Patch"}
    ),
    shell=lambda line: Use("run_commands", {"commands": [line]}),
    env=lambda _url, root: {
        "CLINE_DATA_DIR": str(root / "cline"),
        "CLINE_API_KEY": "k",
        "CLINE_PROVIDER": "openai-compatible",
    },
    prepare=_cline_files,
    model="gpt-4o",
)


def _pi_files(url: str, root: Path) -> None:
    model: Document = {"id": "scripted", "name": "scripted", "input": ["text"]}
    model |= {"contextWindow": 200_000, "maxTokens": 8_192, "reasoning": False}
    model["cost"] = {"input": 3, "output": 15, "cacheRead": 0, "cacheWrite": 0}
    provider = {"baseUrl": f"{url}/v1", "api": "openai-completions", "apiKey": "k"}
    _written(root / "pi" / "models.json", {"providers": {"own": {**provider, "models": [model]}}})
    _written(
        root / "pi" / "mcp.json", {"mcpServers": {"subagents": {**OURS, "exposure": "direct"}}}
    )


PI: Final = _setup(
    "pi-acp",
    edit=lambda path, text: Use("write", {"path": path, "content": text}),
    shell=lambda line: Use("bash", {"command": line}),
    env=lambda _url, root: {
        "PI_CODING_AGENT_DIR": str(root / "pi"),
        "PI_ACP_PI_COMMAND": str(place() / "pi-acp" / "node_modules" / ".bin" / "pi"),
        "PI_OFFLINE": "1",
        "PATH": f"{node(24)[0].parent}{os.pathsep}{os.environ['PATH']}",
    },
    prepare=_pi_files,
)

SETUPS: Final = {
    setup.name: setup
    for setup in (
        *(OPENCODE, CLAUDE_ACP, GEMINI, QWEN, GOOSE, CODEX_ACP),
        *(COPILOT, KILO, CLINE, PI),
    )
}
