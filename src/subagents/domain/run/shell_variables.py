"""Which variables of a person's shell go with the runs it asks for, without being named.

Those of ``SHELL_VARIABLES`` for plain commands, those of ``PROVIDER_VARIABLES`` for agent programs:
of them each gets what its runtime passes on (``runtimes/provider_keys.py``).
"""

from collections.abc import Callable, Mapping
from typing import Final

SHELL_VARIABLES: Final = (
    "PATH", "VIRTUAL_ENV", "LANG", "LANGUAGE", "LC_*", "TERM", "COLORTERM", "NO_COLOR",
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
    "http_proxy", "https_proxy", "all_proxy", "no_proxy", "SSH_AUTH_SOCK",
)  # fmt: skip
"""Which programs are found, which language and terminal they speak, and how they reach others."""
PROVIDER_VARIABLES: Final = (
    "ANTHROPIC_*", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_*",
    "CLAUDE_CODE_SKIP_BEDROCK_AUTH", "CLAUDE_CODE_SKIP_VERTEX_AUTH",
    "CODEX_HOME", "CODEX_API_KEY", "CODEX_CA_CERTIFICATE", "OPENAI_*", "GEMINI_*", "GOOGLE_*",
    "OPENROUTER_*", "DASHSCOPE_*", "QWEN_*", "GOOSE_*", "OPENCODE_*", "OPENCLAW_*",
    "COPILOT_*", "KILO_*", "CLINE_*", "PI_*",
)  # fmt: skip
"""Which model provider an agent program asks, and as whom."""
STARTED_BY: Final = "SUBAGENTS_STARTED_BY"
"""The agent program whose client started the daemon, in the daemon's environment; unset where that
is not known."""
_LOGINS: Final = ("_API_KEY", "_AUTH_TOKEN", "_OAUTH_TOKEN", "_TOKEN", "_CONFIG_DIR", "_HOME")
_LOGIN_PARTS: Final = ("_USE_BEDROCK", "_USE_VERTEX", "_USE_FOUNDRY", "GOOSE_PROVIDER")

_NAMES: Final = frozenset(SHELL_VARIABLES)
_PREFIXES: Final = tuple(each[:-1] for each in SHELL_VARIABLES if each.endswith("*"))
_OF_PROVIDERS: Final = frozenset(PROVIDER_VARIABLES)
_PROVIDERS: Final = tuple(each[:-1] for each in PROVIDER_VARIABLES if each.endswith("*"))


def is_of_shell(name: str) -> bool:
    """Whether it is one of ``SHELL_VARIABLES``."""
    return name in _NAMES or name.startswith(_PREFIXES)


def shell_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """``SHELL_VARIABLES`` as they are where a person calls; none in a worker of ours."""
    return _brought(environ, is_of_shell)


def is_of_provider(name: str) -> bool:
    """Whether it is one of ``PROVIDER_VARIABLES``."""
    return name in _OF_PROVIDERS or name.startswith(_PROVIDERS)


def provider_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """``PROVIDER_VARIABLES`` as they are where a person calls; none in a worker of ours."""
    return {name: value for name, value in _brought(environ, is_of_provider).items() if value}


def _brought(environ: Mapping[str, str], is_meant: Callable[[str], bool]) -> dict[str, str]:
    # A worker has none to bring: it is an agent, and what it spawns has what the daemon gives.
    if environ.get("SUBAGENTS_RUN_ID"):
        return {}
    found = {name: value for name, value in environ.items() if is_meant(name)}
    # What is not text cannot be sent in a request.
    return {name: value for name, value in found.items() if _is_text(value)}


def is_login(name: str) -> bool:
    """Whether a provider's variable says as whom it is asked, and not only where or how."""
    return name.endswith(_LOGINS) or any(part in name for part in _LOGIN_PARTS)


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
