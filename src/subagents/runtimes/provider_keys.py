"""Which variables let a worker ask its model provider, and whose limits an attempt shares.

Looked for in the agent's section and in the environment that its program gets; a provider that
cannot be found is known by the agent's id. Keys are only ever hashed here.
"""

import contextlib
import hashlib
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import urlsplit

from subagents.domain.rules.provider_limits import Provider
from subagents.domain.run.run import Run
from subagents.domain.run.spec import Resolved
from subagents.errors import ConfigError, UsageError
from subagents.runtimes.acp import acp_agents
from subagents.runtimes.acp.acp import AcpDialect
from subagents.runtimes.acp.acp_agents import facts_of
from subagents.runtimes.claude.claude_code import ClaudeDialect
from subagents.runtimes.codex.codex import CodexDialect
from subagents.runtimes.llm import llm_options
from subagents.runtimes.process.environment import passed_variables

USUAL_PROVIDERS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "claude-code": (
        "anthropic",
        ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_*"),
    ),
    "codex": ("openai", ("OPENAI_BASE_URL", "OPENAI_API_KEY", "CODEX_*")),
}
"""By runtime: whom its program asks when nothing says otherwise, and what it takes from ours."""

_ADDRESS: Final = "_BASE_URL"
_KEYS: Final = ("_KEY", "_TOKEN", "_SECRET")
DIGEST_CHARS: Final = 16


def passes(resolved: Resolved, name: str) -> bool:
    """Whether a run's worker is given this variable to ask its model provider with.

    Args:
        resolved: Of the run: its runtime and the agent's section.
        name: Of a variable.
    """
    names = _passed_names(resolved.runtime, resolved.options, resolved.model)
    return any(name.startswith(each[:-1]) if each.endswith("*") else name == each for each in names)


def _passed_names(runtime: str, options: Mapping[str, object], model: str | None) -> Iterable[str]:
    wanted = options.get("pass_env")
    named = [each for each in wanted if isinstance(each, str)] if isinstance(wanted, list) else []
    match runtime:
        case ClaudeDialect.name:
            return (*ClaudeDialect.passes, *named)
        case CodexDialect.name:
            return (*CodexDialect.passes, *named)
        case AcpDialect.name:
            with contextlib.suppress(ConfigError):
                return (*facts_of(acp_agents.parse_options(options)).passes, *named)
        case llm_options.NAME:
            with contextlib.suppress(UsageError):
                llm = llm_options.parse_options(options)
                provider, _ = llm_options.named_model(model, llm)
                keys = llm_options.key_names(provider, llm)
                return (*keys, llm_options.BASE_URLS[provider], *named)
    return named


def provider_of(run: Run, environ: Mapping[str, str]) -> Provider:
    """Whose limits the run's attempts share.

    Args:
        run: Its options are the agent's section.
        environ: Of the daemon.
    """
    options = run.resolved.options
    usual, names = USUAL_PROVIDERS.get(run.resolved.runtime, (None, ()))
    wanted = options.get("pass_env")
    passed = [each for each in wanted if isinstance(each, str)] if isinstance(wanted, list) else []
    env = {**passed_variables(environ, (*names, *passed, *_named_keys(options))), **_own(options)}
    name = _address(options, env) or _named(options, run.resolved.model) or usual
    secret = "\0".join(f"{k}={env[k]}" for k in sorted(env) if k.endswith(_KEYS))
    digest = hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()[:DIGEST_CHARS]
    shown = name or run.resolved.agent_id
    return Provider(name=shown, key=f"{run.resolved.runtime}/{shown}/{digest}")


def _own(options: Mapping[str, object]) -> dict[str, str]:
    env = options.get("env")
    return {str(k): str(v) for k, v in env.items()} if isinstance(env, dict) else {}


def _named_keys(options: Mapping[str, object]) -> Iterable[str]:
    """Variables that the section names as the place of a key: ``api_key_env = "X_API_KEY"``."""
    return [
        value for key, value in options.items() if key.endswith("_env") and isinstance(value, str)
    ]


def _address(options: Mapping[str, object], env: Mapping[str, str]) -> str | None:
    """The host that is asked, when one is named."""
    named = [options.get("base_url"), *(env[k] for k in sorted(env) if k.endswith(_ADDRESS))]
    for url in named:
        if isinstance(url, str) and url:
            parts = urlsplit(url)
            if parts.hostname:
                return parts.hostname if parts.port is None else f"{parts.hostname}:{parts.port}"
    return None


def _named(options: Mapping[str, object], model: str | None) -> str | None:
    """``provider = "openai"``, or the part of the model's name before the colon."""
    provider = options.get("provider")
    if isinstance(provider, str) and provider:
        return provider
    for name in (model, options.get("model")):
        if isinstance(name, str) and ":" in name:
            return name.partition(":")[0]
    return None
