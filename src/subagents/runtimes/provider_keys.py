"""Which variables let a worker ask its model provider, and whose limits an attempt shares.

Looked for in the agent's section and in the environment that its program gets; a provider that
cannot be found is known by the agent's id. Keys are only ever hashed here.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Final

from subagents.domain.rules.provider_limits import Provider
from subagents.domain.run.run import Run
from subagents.domain.run.spec import Resolved
from subagents.ports import Asking, Runtime
from subagents.runtimes.process.environment import passed_variables

_ADDRESS: Final = "_BASE_URL"
_HOST: Final = re.compile(r"[a-z][a-z0-9+.-]*://(?:[^/?#]*@)?([^/?#]+)")
"""The host and port in an address, also in one that no program could use."""
_KEYS: Final = ("_KEY", "_TOKEN", "_SECRET")
DIGEST_CHARS: Final = 16


class ProviderKeys:
    """What the runtimes of this daemon, by their names, say of it."""

    def __init__(self, runtimes: Mapping[str, Runtime]) -> None:
        self._runtimes = runtimes

    def passes(self, resolved: Resolved, name: str) -> bool:
        """Whether a run's worker is given the variable ``name`` to ask its model provider with."""
        runtime = self._runtimes.get(resolved.runtime)
        own = ()
        if isinstance(runtime, Asking):
            own = runtime.passed(resolved.options, resolved.model)
        names = (*own, *_named_by_agent(resolved.options))
        return any(
            name.startswith(each[:-1]) if each.endswith("*") else name == each for each in names
        )

    def passed_to_all(self, runtime: str) -> tuple[str, ...]:
        """Which of our variables its workers get without being named in the agent."""
        found = self._runtimes.get(runtime)
        return found.passes if isinstance(found, Asking) else ()

    def provider_of(self, run: Run, environ: Mapping[str, str]) -> Provider:
        """Whose limits the run's attempts share; ``environ`` is the daemon's."""
        options = run.resolved.options
        runtime = self._runtimes.get(run.resolved.runtime)
        usual = runtime.usual_provider if isinstance(runtime, Asking) else None
        names = () if usual is None else usual.variables
        # Variables that the section names as the place of a key: ``api_key_env = "X_API_KEY"``.
        keys = [v for k, v in options.items() if k.endswith("_env") and isinstance(v, str)]
        passed = passed_variables(environ, (*names, *_named_by_agent(options), *keys))
        env = {**passed, **_own(options)}
        name = _address(options, env) or _named(options, run.resolved.model)
        if name is None and usual is not None:
            name = usual.name
        # By their hash: two keys of one provider have limits of their own.
        secret = "\0".join(f"{k}={env[k]}" for k in sorted(env) if k.endswith(_KEYS))
        digest = hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()
        shown = name or run.resolved.agent_id
        key = f"{run.resolved.runtime}/{shown}/{digest[:DIGEST_CHARS]}"
        return Provider(name=shown, key=key)


def _named_by_agent(options: Mapping[str, object]) -> list[str]:
    wanted = options.get("pass_env")
    return [each for each in wanted if isinstance(each, str)] if isinstance(wanted, list) else []


def _own(options: Mapping[str, object]) -> dict[str, str]:
    env = options.get("env")
    return {str(k): str(v) for k, v in env.items()} if isinstance(env, dict) else {}


def _address(options: Mapping[str, object], env: Mapping[str, str]) -> str | None:
    """The host that is asked, when one is named."""
    named = [options.get("base_url"), *(env[k] for k in sorted(env) if k.endswith(_ADDRESS))]
    found = (_HOST.match(url.lower()) for url in named if isinstance(url, str))
    return next((each[1] for each in found if each is not None), None)


def _named(options: Mapping[str, object], model: str | None) -> str | None:
    """``provider = "openai"``, or the part of the model's name before the colon."""
    provider = options.get("provider")
    if isinstance(provider, str) and provider:
        return provider
    for name in (model, options.get("model")):
        if isinstance(name, str) and ":" in name:
            return name.partition(":")[0]
    return None
