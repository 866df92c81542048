"""The runtime ``acp``: any agent that speaks the Agent Client Protocol over its stdin and stdout.

How a turn goes is in ``acp_turn``, what each agent does differently in ``acp_agents``.

See docs/runtimes/acp.md.
"""

import contextlib
import os
from collections.abc import Mapping
from typing import Final

import msgspec

from subagents.domain.rules.evidence import added
from subagents.domain.rules.tool_kinds import ToolScope
from subagents.domain.run.access import Access, AccessLevel, Keeper
from subagents.domain.run.signals import Signal, UsageSeen
from subagents.domain.run.spec import Abilities
from subagents.domain.run.values import replace
from subagents.errors import ConfigError, Forbidden, UsageError
from subagents.extensions.acp import acp_agents, acp_places, acp_session, acp_stream, acp_turn
from subagents.extensions.acp.acp_agents import (
    UNKNOWN_AGENT,
    UNSERVED,
    AcpOptions,
    ScopeMeans,
    SecondPrompt,
    ServerMeans,
    TokenSource,
    facts_of,
    parse_options,
    server_means,
)
from subagents.extensions.acp.acp_scope import server_switches, switches, unenforceable
from subagents.extensions.acp.acp_turn import (
    MARK,
    STEER,
    AcpPhase,
    AcpState,
    AcpStep,
)
from subagents.extensions.conversation import conversation, jsonrpc
from subagents.extensions.conversation.dialect import (
    InputLine,
    Invocation,
    Opening,
    Permissions,
    ProgramPlaces,
    TurnStep,
    servers_unkept,
)
from subagents.extensions.conversation.json_fields import table_at
from subagents.extensions.conversation.versions_seen import newest_seen
from subagents.ports import Runtime
from subagents.runtimes.output.output_items import system_item
from subagents.runtimes.process.environment import passed_variables, program
from subagents.runtimes.runtime_plugins import RuntimeHost

TAKES: Final = frozenset({SecondPrompt.STEERS, SecondPrompt.PULLED})
"""What a second prompt does where messages go into the turn."""
_PIPED: Final = (
    'exec 4>&1; s=$({ { "$@" 3>&- 4>&-; echo $? >&3; } | cat >&4 3>&-; } 3>&1); exit "$s"'
)
"""The program with a pipe for its stdout; ends when all of it was written, with its status."""


class AcpDialect:
    """See ``Dialect``; what an agent does differently is in ``acp_agents``."""

    asks_first = True
    name = "acp"
    passes: tuple[str, ...] = ()
    """Which variables are passed is the agent's row to say: see ``passed``."""
    abilities = Abilities(survives_daemon=True, interrupt=True)
    """What an agent can do that is not known; see ``abilities_of``."""

    def passed(self, options: Mapping[str, object], model: str | None) -> tuple[str, ...]:
        """What the agent of these options is passed; see ``PassesByOptions``."""
        del model
        with contextlib.suppress(ConfigError):
            return facts_of(acp_agents.parse_options(options)).passes
        return ()

    def abilities_of(self, options: Mapping[str, object]) -> Abilities:
        """What the agent of these options can do.

        Raises:
            ConfigError: See ``check``.
        """
        facts = facts_of(parse_options(options))
        return replace(
            self.abilities,
            steer=facts.second_prompt in TAKES,
            resume=facts.resumes,
            scope_tools=facts.scope is not ScopeMeans.NONE,
            usage=facts.tokens is not TokenSource.UNKNOWN,
            usage_by_turn=facts.tokens in {TokenSource.TURN, TokenSource.QUOTA},
            model=facts.takes_model,
        )

    def check(self, options: Mapping[str, object]) -> None:
        """See ``Dialect.check``."""
        parse_options(options)

    def check_servers(self, options: Mapping[str, object]) -> None:
        """See ``ports.Serving.check_servers``."""
        if server_means(options) is ServerMeans.NONE:
            why = "its program brings those of its user's own configuration, too"
            hint = "remove it, or use claude-agent-acp, gemini, qwen, or another runtime"
            raise servers_unkept(f"ACP agent {options.get('agent', 'of no known kind')}", why, hint)

    def unserved(self, options: Mapping[str, object]) -> tuple[str, str] | None:
        """See ``unserved`` of the ports."""
        agent = options.get("agent")
        if agent not in UNSERVED:
            return None
        why = f"{agent} starts no MCP servers of a session: its worker has none of our tools"
        return f"{why} but by its user's own list", f"subagents mcp install {UNSERVED[agent]}"

    def check_scope(
        self, options: Mapping[str, object], tools: tuple[str, ...] | None, deny: tuple[str, ...]
    ) -> None:
        """See ``Dialect.check_scope``."""
        parsed = parse_options(options)
        refused = unenforceable(facts_of(parsed), ToolScope(tools=tools, deny=deny))
        if refused:
            agent = parsed.agent or (parsed.command or ("this agent",))[0]
            raise Forbidden(
                f'nothing keeps {agent} from {", ".join(refused)}: runtime "acp" scopes whole '
                "tools only, and only of agents that can be started without them",
                guardrail="tools",
                hint="name whole tools, or use an agent that can be scoped; see: subagents doctor",
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
        """Without a shell, and where the agent's own edits stay in the working directory."""
        if access.level is AccessLevel.READ:
            return ("shell", "write", "edit", "agents")
        known = acp_places.known(parse_options(options).agent)
        return ("shell", "agents") if known.stays_near else None

    def places(self, options: Mapping[str, object], env: Mapping[str, str]) -> ProgramPlaces:
        """See ``Restrained.places``."""
        return acp_places.places(parse_options(options).agent, env)

    def invocation(self, opening: Opening, *, directory: str, path: str) -> Invocation:
        """See ``Dialect.invocation``."""
        options = parse_options(opening.options)
        facts = facts_of(options)
        scope = ToolScope(tools=opening.tools, deny=opening.tools_deny)
        access = opening.access
        by_tools = access is not None and access.kept_by is Keeper.TOOLS
        given = switches(facts, scope, directory=directory, is_near=by_tools)
        alone = server_switches(opening).argv
        argv = (*facts.command, *facts.arguments, *options.args, *given.argv, *alone)
        if opening.model is not None and facts.model_argument is not None:
            argv = (*argv, facts.model_argument, opening.model)
        try:
            found = program(argv[0], cwd=opening.cwd, path=path, key="command")
        except UsageError as error:
            tried = newest_seen(options.agent or "")
            how = f" (it comes with {facts.package} {tried})" if facts.package else ""
            raise UsageError(f"{error}{how}") from error
        stronger = {*opening.given, *opening.withheld}
        passed = passed_variables(os.environ, facts.passes)
        passed = {name: value for name, value in passed.items() if name not in stronger}
        own = {name: each.replace("{directory}", directory) for name, each in facts.env.items()}
        env = passed | own | options.env | given.env
        argv = (found, *argv[1:])
        if facts.needs_pipe:
            argv = ("/bin/sh", "-c", _PIPED, "acp", *argv)
        files = {name: text.encode() for name, text in facts.files.items()}
        return Invocation(argv=argv, env=env, files=files | given.files)

    def begin(self, opening: Opening) -> AcpStep:
        """See ``Dialect.begin``."""
        try:
            options = parse_options(opening.options)
            facts = facts_of(options)
        except ConfigError:  # of an attempt that never started, or of another version
            options, facts = AcpOptions(), UNKNOWN_AGENT
        state = AcpState(opening=opening, facts=facts, options=options)
        return TurnStep(state, input_lines=(acp_session.initialize(),))

    def read_line(self, state: AcpState, line: bytes, *, now_ms: int | None) -> AcpStep:
        """See ``Dialect.read_line``."""
        if not line.strip():
            return TurnStep(state)
        step = self._step(state, line, now_ms=now_ms)
        return step._replace(signals=tuple(_counted_on(state, each) for each in step.signals))

    def _step(self, state: AcpState, line: bytes, *, now_ms: int | None) -> AcpStep:
        match jsonrpc.decode(line):
            case jsonrpc.Response() as answer:
                return acp_turn.answered(state, answer)
            case jsonrpc.Notification(method="session/update", params=params):
                return acp_turn.updated(state, table_at(params, "update"), now_ms=now_ms)
            case jsonrpc.Notification(method=method):
                return acp_turn.notified(state, method)
            case jsonrpc.Request() as request:
                return acp_turn.asked(state, request, now_ms=now_ms)
            case jsonrpc.Unreadable(text=text):
                return TurnStep(state, output=(system_item(text),))

    def permissions(self, state: AcpState) -> Mapping[str, Permissions]:
        """See ``Asks.permissions``."""
        return state.permissions

    def steer(self, state: AcpState, message: str, *, key: str) -> InputLine | None:
        """See ``Dialect.steer``; what is sent first is the mark."""
        if not state.open or state.facts.second_prompt not in TAKES:
            return None
        marked = STEER + msgspec.json.encode((key, message)).decode()
        return InputLine(key, jsonrpc.request(marked, MARK, {}, versioned=True))

    def accepted(self, state: AcpState, key: str) -> bool | None:
        """See ``Dialect.accepted``."""
        return state.taken.get(key)

    def interrupt(self, state: AcpState, *, key: str) -> InputLine | None:
        """See ``Dialect.interrupt``."""
        if not state.open:
            return None
        params = {"sessionId": state.session_id}
        return InputLine(key, jsonrpc.notification("session/cancel", params, versioned=True))

    def awaits(self, state: AcpState) -> str | None:
        """See ``Awaiting.awaits``."""
        match state.phase:
            case AcpPhase.SETUP:
                return f"the answer to `{state.asked}`"
            case AcpPhase.SETTINGS:
                return "the answers to its settings"
            case _:
                return None

    def is_done(self, state: AcpState) -> bool:
        """See ``Dialect.is_done``."""
        return state.phase is AcpPhase.OVER

    def finish(self, state: AcpState) -> AcpStep:
        """See ``Dialect.finish``."""
        step = acp_stream.flush(state.stream)
        state = replace(state, stream=step.stream)
        if state.phase is AcpPhase.OVER:
            return TurnStep(state, output=step.output)
        what = "before its turn was over" if state.open else "before its turn began"
        result = acp_turn.result_of(state.stream, error=f"the agent ended {what}")
        return TurnStep(replace(state, phase=AcpPhase.OVER), output=step.output, signals=(result,))


def _counted_on(state: AcpState, signal: Signal) -> Signal:
    """Usage with that of the attempt's turns before.

    Tokens are reported for one process. A cost may be the whole session's: one that is less than
    what was known before can only have begun again.
    """
    before = state.opening.used
    if not isinstance(signal, UsageSeen) or before is None:
        return signal
    both = added(before, signal.usage) or signal.usage
    cost = signal.usage.cost_usd
    whole = None if state.stream.cost_before else before.cost_usd
    if cost is None or (whole is not None and cost >= whole):
        both = replace(both, cost_usd=cost if cost is not None else before.cost_usd)
    return replace(signal, usage=both)


def runtimes(host: RuntimeHost) -> tuple[Runtime, ...]:
    """See ``Extension.runtimes``."""
    return (conversation.runtime_on(host, AcpDialect()),)
