"""Every installed agent that speaks ACP, in a place of its own; rows as in ``program_setups``.

Home directories are the test's (``live_home``), so nobody is logged in and no own settings count.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from tests.e2e.claude_place import program as claude_program
from tests.e2e.program_setups import ProgramSetup
from tests.e2e.scripted_model import Use
from tests.real.install import found

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

SETUPS: Final = {
    setup.name: setup for setup in (OPENCODE, CLAUDE_ACP, GEMINI, QWEN, GOOSE, CODEX_ACP)
}
