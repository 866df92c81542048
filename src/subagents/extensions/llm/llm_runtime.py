"""The runtime ``llm``: our own agent loop on any OpenAI-compatible, Anthropic or Google endpoint.

The program is ``python -m subagents.extensions.llm.agent_loop``, this interpreter's. It prints the
structured events of ``worker_events``, and besides ``{"subagents":"taken","key":…}`` for a message
that went into the conversation. Its input is lines: ``{"type":"message","key","text"}`` and
``{"type":"interrupt","key"}``.

The agent's ``model`` is ``PROVIDER:NAME`` (``anthropic:claude-sonnet-4-5``), or the name alone
next to ``runtime_options.provider``. Its options are in ``llm_options``.

See docs/runtimes/llm.md.
"""

import contextlib
import importlib.util
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from subagents.domain.rules.tool_kinds import kind_of
from subagents.domain.run.access import Access, AccessLevel
from subagents.domain.run.signals import ResultSeen
from subagents.domain.run.spec import Abilities
from subagents.domain.run.values import Value, replace
from subagents.errors import Forbidden, UsageError
from subagents.extensions.conversation import conversation
from subagents.extensions.conversation.dialect import (
    InputLine,
    Invocation,
    Opening,
    ProgramPlaces,
    TurnStep,
    servers_unkept,
)
from subagents.extensions.llm import llm_options
from subagents.extensions.llm.llm_assignment import (
    BASE_URLS,
    FILE,
    OWN_TOOLS,
    Assignment,
    Provider,
)
from subagents.extensions.llm.llm_options import (
    KINDS,
    NAME,
    LlmOptions,
    key_names,
    key_variable,
    named_model,
    parse_options,
    scoped,
    thinking_level,
)
from subagents.installation import extra_command
from subagents.ports import Runtime
from subagents.runtimes.output.output_items import ALIVE
from subagents.runtimes.output.terminal_text import line_items
from subagents.runtimes.output.worker_events import (
    ErrorEvent,
    ResultEvent,
    TextEvent,
    event_of,
    output_item_of,
    signal_of,
)
from subagents.runtimes.process.processes import ROOT_VARIABLE
from subagents.runtimes.runtime_plugins import RuntimeHost

INTERRUPT: Final = b'{"type":"interrupt"}'
PACKAGE: Final = "pydantic_ai"
MODULES: Final[Mapping[Provider, str]] = {
    "anthropic": "anthropic",
    "openai": "openai",
    "openai-responses": "openai",
    "google": "google.genai",
}
"""What each provider's extra brings."""
SESSION: Final = "conversation.json"
LIMITS: Final = "llm-limits"
_SESSION: Final = re.compile(r"[A-Za-z0-9_-]+/[0-9]+")


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # not even the package around it
        return False


class LlmState(Value, frozen=True):
    """What the stream came to so far; kept in the attempt's checkpoint."""

    text: str = ""
    """The last text of the model."""
    error: str = ""
    """The last error that was printed."""
    taken: tuple[str, ...] = ()
    is_done: bool = False


class LlmDialect:
    """See ``Dialect``.

    A conversation is a file of the attempt that held it, and goes when that is forgotten; an
    attempt that continues it begins with a copy. What is known of providers' limits is next to
    the attempts, for all workers.
    """

    @property
    def name(self) -> str:
        return NAME

    @property
    def session_files(self) -> frozenset[str]:
        return frozenset({SESSION})

    @property
    def abilities(self) -> Abilities:
        return Abilities(
            survives_daemon=True,
            steer=True,
            resume=True,
            scope_tools=True,
            interrupt=True,
            usage=True,
            model=True,
            holds=True,
        )

    @property
    def passes(self) -> tuple[str, ...]:
        """None: the one key that a worker needs is picked by its provider (``invocation``)."""
        return ()

    def passed(self, options: Mapping[str, object], model: str | None) -> tuple[str, ...]:
        """The keys and the address of the provider that its model is at."""
        with contextlib.suppress(UsageError):
            llm = llm_options.parse_options(options)
            provider, _ = llm_options.named_model(model, llm)
            return (*llm_options.key_names(provider, llm), BASE_URLS[provider])
        return ()

    def check(self, options: Mapping[str, object]) -> None:
        """Refuse options with which no attempt could ever start.

        Raises:
            ConfigError: Names the key and what is allowed.
        """
        parse_options(options)

    def check_servers(self, options: Mapping[str, object]) -> None:
        """See ``ports.Serving.check_servers``: it has our own tools alone."""
        if llm_options.parse_options(options).mcp_servers:
            why = "it speaks to no other server than ours; only [] can be kept"
            raise servers_unkept(f'runtime "{NAME}"', why, "set mcp_servers = [], or remove it")

    def check_scope(
        self, options: Mapping[str, object], tools: tuple[str, ...] | None, deny: tuple[str, ...]
    ) -> None:
        """Any denial holds, since a tool that is not to be used is not there at all.

        Raises:
            Forbidden: ``tools`` names one that this program does not have.
        """
        del options, deny
        missing = [tool for tool in tools or () if kind_of(tool) not in KINDS]
        if missing:
            raise Forbidden(
                f'runtime "{NAME}" has no tool {", ".join(missing)}; it has {", ".join(OWN_TOOLS)}',
                guardrail="tools",
            )

    def access_of(
        self, options: Mapping[str, object], configured: AccessLevel | None
    ) -> AccessLevel:
        """See ``Restrained.access_of``."""
        del options
        return configured or AccessLevel.FULL

    def kept_by_tools(
        self, options: Mapping[str, object], access: Access
    ) -> tuple[str, ...] | None:
        """Without a shell it stays in the working directory."""
        del options
        if access.level is AccessLevel.READ:
            return ("shell", "write", "edit")
        return ("shell",)

    def places(self, options: Mapping[str, object], env: Mapping[str, str]) -> ProgramPlaces:
        """What is known of providers' limits is for all workers; the rest is the attempt's."""
        del options
        return ProgramPlaces((str(Path(env[ROOT_VARIABLE]).parent / LIMITS),))

    def invocation(self, opening: Opening, *, directory: str, path: str) -> Invocation:
        """How to start the worker program for this turn.

        Raises:
            UsageError: The packages, the model or the key are missing.
        """
        del path
        options = parse_options(opening.options)
        provider, model = named_model(opening.model, options)
        if not all(map(_is_installed, (PACKAGE, MODULES[provider]))):
            raise UsageError(
                f'runtime "{NAME}" needs more packages for {provider}: '
                f"{extra_command(provider.partition('-')[0])}"
            )
        daemon = {n: v for n, v in os.environ.items() if n not in opening.withheld}
        environ = {**daemon, **options.env, **dict.fromkeys(opening.given, "given")}
        key = key_variable(provider, options, environ)
        variable = BASE_URLS[provider]
        address = options.base_url or environ.get(variable) or None
        # One that was given for the run is read by the worker itself.
        base_url = options.base_url if variable in opening.given else address
        if key is None and address is None:
            names = " or ".join(key_names(provider, options))
            raise UsageError(
                f"`model`: {provider} needs a key, and {names} is not set in the daemon's "
                "environment; give it to the run (--env), set it there and restart the daemon, or "
                "name another variable in runtime_options.api_key_env"
            )
        attempts = Path(directory).parents[1]
        limits = attempts.parent / LIMITS
        limits.mkdir(parents=True, exist_ok=True, mode=0o700)
        session = f"{opening.run_id}/{opening.number}"
        before = opening.session_id
        assignment = replace(
            _assignment(opening, options, provider, model),
            key_env=key,
            base_url=base_url,
            session_id=session,
            session_file=str(attempts / session / SESSION),
            history_file=None if before is None else str(attempts / _checked(before) / SESSION),
            limits_dir=str(limits),
        )
        return Invocation(
            # Without -P a file in the working directory could stand in for a module of ours.
            (
                sys.executable,
                "-P",
                "-m",
                "subagents.extensions.llm.agent_loop",
                str(Path(directory, FILE)),
            ),
            env={} if key is None or key in opening.given else {key: environ[key]},
            files={FILE: msgspec.json.encode(assignment)},
        )

    def begin(self, opening: Opening) -> TurnStep[LlmState]:
        """Nothing is sent: the message is in the assignment."""
        del opening
        return TurnStep(LlmState())

    def read_line(self, state: LlmState, line: bytes, *, now_ms: int | None) -> TurnStep[LlmState]:
        """Take one line of the worker's standard output."""
        del now_ms
        key = _taken_key(line)
        if key is not None:
            return TurnStep(replace(state, taken=(*state.taken, key)))
        event = event_of(line)
        if event is None:
            return TurnStep(state, output=tuple(line_items(line, is_stderr=False)))
        signal = signal_of(event, key="")
        match event:
            case TextEvent() if event.text:
                state = replace(state, text=event.text)
            case ErrorEvent():
                state = replace(state, error=event.text)
            case ResultEvent():
                # Its text was printed before, and an error would come twice.
                is_news = event.is_error and event.error not in {None, state.error}
                output = (output_item_of(event),) if is_news else (ALIVE,)
                state = replace(state, is_done=True)
                return TurnStep(state, output=output, signals=() if signal is None else (signal,))
        return TurnStep(
            state, output=(output_item_of(event),), signals=() if signal is None else (signal,)
        )

    def steer(self, state: LlmState, message: str, *, key: str) -> InputLine | None:
        if state.is_done:
            return None
        line = {"type": "message", "key": key, "text": message}
        return InputLine(key, msgspec.json.encode(line))

    def accepted(self, state: LlmState, key: str) -> bool | None:
        return True if key in state.taken else None

    def interrupt(self, state: LlmState, *, key: str) -> InputLine | None:
        return None if state.is_done else InputLine(key, INTERRUPT)

    def is_done(self, state: LlmState) -> bool:
        """Its result is the last thing it prints, and it takes no message after it."""
        return state.is_done

    def finish(self, state: LlmState) -> TurnStep[LlmState]:
        """A worker that was killed or fell over gave no result: its last text stands for it."""
        if state.is_done:
            return TurnStep(state)
        why = f": {state.error}" if state.error else ""
        error = f"the worker ended in the middle of its turn{why}"
        return TurnStep(
            state, signals=(ResultSeen(key="", text=state.text, is_error=True, error=error),)
        )


def _assignment(
    opening: Opening, options: LlmOptions, provider: Provider, model: str
) -> Assignment:
    """All of it but for the places of its files and the key."""
    return Assignment(
        attempt_id=opening.attempt_id,
        message=opening.message,
        system_prompt=opening.system_prompt,
        cwd=opening.cwd,
        provider=provider,
        model=model,
        tools=scoped(opening.tools, opening.tools_deny),
        tools_deny=tuple(name.strip().lower() for name in opening.tools_deny),
        thinking=thinking_level(opening.thinking),
        temperature=options.temperature,
        max_tokens=options.max_tokens,
        max_turns=options.max_turns,
        context_window=options.context_window,
        shell_timeout_s=options.shell_timeout_seconds,
        request_timeout_s=options.request_timeout_seconds,
        limit_patience_s=options.limit_patience_seconds,
        session_file="",
        session_id="",
        limits_dir="",
    )


def _checked(session_id: str) -> str:
    """The directory of the attempt that held the session, below the attempts' root.

    Raises:
        UsageError: It is no session of this runtime.
    """
    if not _SESSION.fullmatch(session_id):
        raise UsageError(
            f'"{session_id}" is no session of runtime "{NAME}"; start a new run instead'
        )
    return session_id


class _Taken(msgspec.Struct, frozen=True, tag_field="subagents", tag="taken"):
    key: str


_TAKEN: Final = msgspec.json.Decoder(_Taken)


def _taken_key(line: bytes) -> str | None:
    if b'"taken"' not in line:
        return None
    try:
        return _TAKEN.decode(line).key
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def runtimes(host: RuntimeHost) -> tuple[Runtime, ...]:
    """See ``Extension.runtimes``."""
    return (conversation.runtime_on(host, LlmDialect()),)
