"""How a session of an ACP agent is opened and set, as requests to send; pure.

``initialize`` → ``authenticate``, where the agent's row says so → ``session/new``, or the session
of an earlier turn → mode, model and other settings, by whichever of the protocol's three ways this
agent offers → ``session/prompt``.
"""

from typing import Final, NamedTuple

from subagents.domain.rules.tool_kinds import ToolScope
from subagents.domain.run.values import Value
from subagents.extensions.acp.acp_agents import (
    SERVERS_ARGUMENT,
    AcpOptions,
    AgentFacts,
    ScopeMeans,
)
from subagents.extensions.acp.acp_scope import server_switches, switches
from subagents.extensions.conversation import jsonrpc
from subagents.extensions.conversation.dialect import InputLine, Opening
from subagents.extensions.conversation.json_fields import merged, text_at, value_at
from subagents.version import __version__

PROTOCOL_VERSION: Final = 1
TRIED: Final = "try:"
"""Beginning of the id of a setting that the agent may refuse."""
_INSTEAD: Final = {"bypassPermissions": "default"}
"""Claude Code does not offer the first to root, and its own default may be a mode in which a model
judges each call, also those of our tools; in the second it asks us."""
OFFERED_MAX: Final = 12
"""Names in a message of what an agent offers."""


class SessionAbilities(Value, frozen=True):
    """What an agent can do with sessions, by its answer to ``initialize``."""

    can_load: bool = False
    can_resume: bool = False
    """Resumes without repeating the whole history."""
    can_title: bool = False
    """Takes a title; without one Codex asks a second model for it after the turn."""


class Setting(NamedTuple):
    """A setting of the session."""

    id: str
    method: str
    params: dict[str, object]


class Settings(NamedTuple):
    """What is to be set, and what was asked for that this agent does not offer."""

    settings: tuple[Setting, ...] = ()
    beside: tuple[Setting, ...] = ()
    """Sent before the prompt, whose turn begins without an answer to them: that of an earlier
    version of ours, which is read again, has none."""
    missing: str | None = None


def ask(id: str, method: str, params: dict[str, object]) -> InputLine:  # noqa: A002
    """A request; its id is its key, too."""
    return InputLine(id, jsonrpc.request(id, method, params, versioned=True))


def initialize() -> InputLine:
    """We offer no files and no terminal: the agent uses its own, on the same machine."""
    return ask(
        "initialize",
        "initialize",
        {
            "protocolVersion": PROTOCOL_VERSION,
            "clientCapabilities": {
                "fs": {"readTextFile": False, "writeTextFile": False},
                "terminal": False,
                # Else what the program itself has to say comes as words of its model.
                "session": {"notices": {}},
            },
            "clientInfo": {"name": "subagents", "title": "subagents", "version": __version__},
        },
    )


def sessions_of(initialized: object) -> SessionAbilities:
    """What the agent can do with sessions, from its answer to ``initialize``."""
    able = value_at(initialized, "agentCapabilities")
    session = value_at(able, "sessionCapabilities")
    return SessionAbilities(
        can_load=value_at(able, "loadSession") is True,
        can_resume=isinstance(value_at(session, "resume"), dict),
        can_title=isinstance(value_at(session, "title"), dict),
    )


def open_session(
    opening: Opening, facts: AgentFacts, session: SessionAbilities, *, again: bool = False
) -> InputLine | None:
    """The request that opens the turn's session; None = the agent cannot resume an old one.

    Args:
        opening: The turn.
        facts: The agent.
        session: What it can do.
        again: ``session/resume`` was refused: try the other way.
    """
    params: dict[str, object] = {"cwd": opening.cwd, "mcpServers": _servers(opening)}
    if meta := _meta(opening, facts):
        params["_meta"] = meta
    if opening.session_id is None:
        return ask("session", "session/new", params)
    params["sessionId"] = opening.session_id
    if session.can_resume and not again:
        return ask("session", "session/resume", params)
    if session.can_load:
        return ask("session:load", "session/load", params)
    return None


def settings_of(
    opening: Opening,
    facts: AgentFacts,
    options: AcpOptions,
    opened: object,
    session_id: str,
    *,
    with_title: bool = False,
) -> Settings:
    """The settings to send, by what the answer to ``session/new`` offers.

    A mode of the table that is not offered gives way to the one in which the agent asks, and is
    answered; either may be refused. One that the user wrote, a model or a thinking level must be
    there.
    """
    offer = _Offer(opened, session_id)
    found: list[Setting] = []
    if with_title and opening.session_id is None:
        titled: dict[str, object] = {
            "sessionId": session_id,
            "title": f"subagents {opening.run_id}",
        }
        found.append(Setting(f"{TRIED}title", "session/set_title", titled))
    scope = ToolScope(tools=opening.tools, deny=opening.tools_deny)
    mode, must = facts.mode, bool(options.mode)
    if not scope.is_open and facts.scope is ScopeMeans.ASKS:
        mode, must = facts.asking_mode, True
    beside: tuple[Setting, ...] = ()
    if not must and mode is not None and offer.setting("mode", mode) is None:
        instead = _INSTEAD.get(mode)
        asking = None if instead is None else offer.setting("mode", instead)
        beside = () if asking is None else (asking._replace(id=f"{TRIED}mode"),)
    wanted = [("mode", mode or None, must)]
    if facts.model_argument is None:
        wanted.append(("model", opening.model, True))
    wanted.append(("thought_level", opening.thinking, True))
    for what, value, needed in wanted:
        setting = None if value is None else offer.setting(what, value)
        if setting is not None:
            found.append(setting if needed else setting._replace(id=f"{TRIED}{what}"))
        elif value is not None and needed:
            return Settings(missing=_missing(what, value, offer))
    found += [offer.option(name, value) for name, value in options.config.items()]
    return Settings(settings=tuple(found), beside=beside)


def prompt(id: str, session_id: str, text: str) -> bytes:  # noqa: A002
    """The line that begins a turn, or steers it."""
    # A message is no command of the program, however it begins.
    text = f"Message:\n{text}" if text.lstrip().startswith("/") else text
    params = {"sessionId": session_id, "prompt": [{"type": "text", "text": text}]}
    return jsonrpc.request(id, "session/prompt", params, versioned=True)


def first_prompt(opening: Opening, facts: AgentFacts) -> str:
    """The turn's message; a new session without another place for it gets its role here."""
    if opening.session_id is not None or facts.system_in_meta or not opening.system_prompt:
        return opening.message
    return f"{opening.system_prompt}\n\n# Your task\n\n{opening.message}"


class _Offer:
    """The modes, models and options that a session offers."""

    def __init__(self, opened: object, session_id: str) -> None:
        self._session_id = session_id
        self._modes = _ids(value_at(value_at(opened, "modes"), "availableModes"), "id")
        self._models = _ids(value_at(value_at(opened, "models"), "availableModels"), "modelId")
        listed = value_at(opened, "configOptions")
        self._options = [each for each in listed if isinstance(each, dict)] if isinstance(
            listed, list
        ) else []  # fmt: skip

    def names(self, what: str) -> list[str]:
        """What may be set, for people."""
        own = {"mode": self._modes, "model": self._models}.get(what, [])
        return own or _ids(value_at(self._option(what), "options"), "value")

    def setting(self, what: str, value: str) -> Setting | None:
        """How to set it; None = it is not offered."""
        if what == "mode" and value in self._modes:
            params: dict[str, object] = {"sessionId": self._session_id, "modeId": value}
            return Setting("set:mode", "session/set_mode", params)
        option = self._option(what)
        if option is not None and (
            known := _like(value, _ids(value_at(option, "options"), "value"))
        ):
            return self.option(text_at(option, "id"), known)
        if what == "model" and (known := _like(value, self._models)):
            params = {"sessionId": self._session_id, "modelId": known}
            return Setting("set:model", "session/set_model", params)
        return None

    def option(self, name: str, value: str | bool) -> Setting:  # noqa: FBT001 - as the user wrote it
        params: dict[str, object] = {"sessionId": self._session_id, "configId": name}
        params |= {"value": value} | ({"type": "boolean"} if isinstance(value, bool) else {})
        return Setting(f"set:{name}", "session/set_config_option", params)

    def _option(self, category: str) -> dict[str, object] | None:
        return next(
            (
                each
                for each in self._options
                if category in {text_at(each, "category"), text_at(each, "id")}
            ),
            None,
        )


def _like(value: str, offered: list[str]) -> str | None:
    """The offered name that is meant: itself, or the only one that ends with it (``scripted/m1``).

    Some put the provider before a model's name, some the thinking level behind it.
    """
    if value in offered:
        return value
    near = [each for each in offered if value in {each.rpartition("/")[2], each.partition("[")[0]}]
    return near[0] if len(near) == 1 else None


def _missing(what: str, value: str, offer: _Offer) -> str:
    names = offer.names(what)
    more = f", … ({len(names)} in all)" if len(names) > OFFERED_MAX else ""
    shown = ", ".join(names[:OFFERED_MAX]) + more if names else "none"
    word = what.replace("_", " ")
    return f"the agent offers no {word} {value!r} in this session; it offers: {shown}"


def _servers(opening: Opening) -> list[dict[str, object]]:
    """Ours finds the worker's token by itself, as do the others: nothing secret stands here."""
    if opening.options.get("agent") in SERVERS_ARGUMENT:
        return []
    return [
        {"name": name, "command": program, "args": args, "env": []}
        for name, (program, *args) in opening.servers.items()
    ]


def _meta(opening: Opening, facts: AgentFacts) -> dict[str, object]:
    scope = ToolScope(tools=opening.tools, deny=opening.tools_deny)
    meta = dict(facts.session_meta) | switches(facts, scope, directory="").session_meta
    meta = merged(meta, server_switches(opening).session_meta)
    if facts.system_in_meta and opening.system_prompt:
        meta["systemPrompt"] = {"append": opening.system_prompt}
    return meta


def _ids(listed: object, key: str) -> list[str]:
    """Names in a list of objects; options may come in groups."""
    if not isinstance(listed, list):
        return []
    found: list[str] = []
    for each in listed:
        if isinstance(value_at(each, "options"), list):
            found += _ids(value_at(each, "options"), key)
        elif name := text_at(each, key):
            found.append(name)
    return found


def auth_methods(initialized: object) -> list[str]:
    """What the agent lets one log in with."""
    return _ids(value_at(initialized, "authMethods"), "id")
