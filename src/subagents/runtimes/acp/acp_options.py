"""The options of an ``acp`` agent (``[agents.<id>.runtime_options]``), and what they come to.

``agent``    One of the table in ``acp_agents``; it says how that program behaves.
``command``  Program and arguments of any other agent; beside ``agent``: how that one is started
             here (its own arguments follow).
``args``     More arguments, after those.
``auth``     The method to ``authenticate`` with; "" = none.
``mode``     The session mode to work in; "" = the agent's own default.
``config``   Session configuration options to set: ``{ name = value }``.

Beside them each field of ``Facts`` that describes behaviour may be given, for an agent that is in
no row or does better by now.
"""

import difflib
from collections.abc import Mapping
from typing import Annotated, Final, Literal

import msgspec

from subagents.domain.run.values import replace
from subagents.errors import ConfigError
from subagents.runtimes.acp.acp_agents import (
    AGENTS,
    CAUTIOUS,
    Facts,
    Scope,
    SecondPrompt,
    Tokens,
)
from subagents.runtimes.runtime_options import check_names, parsed

_NAME: Final = r"^[A-Za-z_][A-Za-z0-9_]*"


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """As written; None = as the table says."""

    agent: str | None = None
    command: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)] | None = None
    args: tuple[str, ...] = ()
    env: dict[Annotated[str, msgspec.Meta(pattern=_NAME + "$")], str] = {}
    pass_env: tuple[Annotated[str, msgspec.Meta(pattern=_NAME + r"\*?$")], ...] = ()
    stdin: Literal["none"] = "none"
    auth: str | None = None
    mode: str | None = None
    config: dict[str, str | bool] = {}
    asking_mode: str | None = None
    second_prompt: SecondPrompt | None = None
    resumes: bool | None = None
    tokens: Tokens | None = None
    cost: bool | None = None
    model_argument: str | None = None
    takes_model: bool | None = None
    system_in_meta: bool | None = None
    needs_pipe: bool | None = None
    scope: Literal["asks", "none"] | None = None


_FACTS: Final = tuple(
    name
    for name in Options.__struct_fields__
    if name in Facts.__struct_fields__ and name not in {"command", "env", "scope"}
)


def parse_options(options: Mapping[str, object]) -> Options:
    """Return the options of an ``acp`` agent.

    Raises:
        ConfigError: Names the key and what is allowed.
    """
    found = parsed(options, Options, runtime="acp")
    _check_agent(found)
    check_names((*found.env, *found.pass_env))
    texts = (*(found.command or ()), *found.args, *found.env.values())
    if any("\0" in text for text in texts):
        raise ConfigError("`command`, `args` and `env` cannot hold NUL characters")
    return found


def facts_of(options: Options) -> Facts:
    """What is known of the agent, with what the options say better."""
    facts = CAUTIOUS if options.agent is None else AGENTS[options.agent]
    said = {name: getattr(options, name) for name in _FACTS}
    facts = replace(facts, **{name: value for name, value in said.items() if value is not None})
    if options.scope is not None:
        facts = replace(facts, scope=Scope(options.scope))
    return replace(facts, command=options.command or facts.command)


def _check_agent(options: Options) -> None:
    known = ", ".join(AGENTS)
    if options.agent is not None and options.agent not in AGENTS:
        near = difflib.get_close_matches(options.agent, AGENTS, n=1)
        meant = f"did you mean {near[0]!r}?" if near else f"known are {known};"
        raise ConfigError(
            f"`agent`: {options.agent!r} is in no row of the table of ACP agents; {meant} "
            "for any other agent set `command` instead"
        )
    if options.agent is None and options.command is None:
        raise ConfigError(
            f'runtime "acp" needs `runtime_options.agent` (one of {known}) or '
            "`runtime_options.command`, the program and arguments of any other ACP agent"
        )
    if options.command is not None and not options.command[0]:
        raise ConfigError("`command` must begin with a program")
