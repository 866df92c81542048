"""May this spawn happen? Pure answers; the engine asks them in the order of 2-lifecycle §2."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from subagents.domain.model import HOLDS_SLOT, Phase, Request, Run
from subagents.domain.spec import Mode, RunSpec
from subagents.domain.values import RunId
from subagents.errors import Forbidden, UsageError

ANY_AGENT: Final = "*"
REQUESTS_PER_MINUTE_MAX: Final = 5
REQUESTS_PENDING_MAX: Final = 3
REQUESTS_PENDING_AT_REQUESTER_MAX: Final = 20
STEER_CHARS_MAX: Final = 4_000
STEER_INTERVAL_MS: Final = 2_000


def resolve_mode(spec: RunSpec) -> Mode:
    """Explicit wins; else ``thread: true`` means session; else run (seed 001 "Two Spawn Modes").

    Raises:
        UsageError: A session without a thread to stay bound to.
    """
    mode = spec.mode or (Mode.SESSION if spec.thread else Mode.RUN)
    if mode is Mode.SESSION and not spec.thread:
        raise UsageError(
            'mode="session" requires thread=true so the subagent can stay bound to a thread.'
        )
    return mode


def check_depth(depth: int, max_spawn_depth: int) -> None:
    """``depth`` is the requester's; top-level callers have 0.

    Raises:
        Forbidden: Guardrail ``depth``.
    """
    if depth >= max_spawn_depth:
        raise Forbidden(
            "sessions_spawn is not allowed at this depth "
            f"(current depth: {depth}, max: {max_spawn_depth}; "
            "agents.defaults.subagents.max_spawn_depth)",
            guardrail="depth",
        )


def check_children(active: int, max_children: int) -> None:
    """``active`` counts the requester's runs that are not yet announcing or later.

    Raises:
        Forbidden: Guardrail ``children``.
    """
    if active >= max_children:
        raise Forbidden(
            "sessions_spawn has reached max active children for this session "
            f"({active}/{max_children}; agents.defaults.subagents.max_children_per_agent)",
            guardrail="children",
            hint="wait for a child to end, or raise the limit in subagents.toml",
        )


def check_allowed(agent_id: str, *, requester_agent: str, allow_agents: Iterable[str]) -> None:
    """An agent may always spawn itself; others must be on its list (seed 001 "Agent Allowlist").

    Raises:
        Forbidden: Guardrail ``allow_agents``; names what is allowed.
    """
    allowed = {name.strip().lower() for name in allow_agents}
    if agent_id == requester_agent or ANY_AGENT in allowed or agent_id in allowed:
        return
    listed = ", ".join(sorted(allowed)) or "none"
    raise Forbidden(
        f'agent "{requester_agent}" may not spawn "{agent_id}" (allowed: {listed}; '
        f"agents.{requester_agent}.subagents.allow_agents)",
        guardrail="allow_agents",
    )


def effective_tools(
    agent_tools: tuple[str, ...] | None,
    *,
    allow: tuple[str, ...] | None,
    deny: Collection[str],
    inherited_allow: tuple[str, ...] | None,
) -> tuple[str, ...] | None:
    """``(agent's tools ∩ toolsAllow) − toolsDeny``; None = unscoped, the runtime's own tools.

    Args:
        agent_tools: From the configuration; None = the agent has no list.
        allow: The spawn's ``toolsAllow``.
        deny: The spawn's ``toolsDeny`` and everything inherited.
        inherited_allow: The requester's set, when it spawns its own agent id.

    Raises:
        Forbidden: Guardrail ``tools``: ``toolsAllow`` names tools beyond the agent's.
    """
    base = agent_tools
    if inherited_allow is not None:
        kept = inherited_allow if base is None else tuple(t for t in base if t in inherited_allow)
        base = kept
    if allow is not None:
        offenders = [] if base is None else [tool for tool in allow if tool not in base]
        if offenders:
            raise Forbidden(
                f"toolsAllow can only narrow: {', '.join(offenders)} not among the agent's tools "
                f"({', '.join(base or ()) or 'none'})",
                guardrail="tools",
            )
        base = allow
    return None if base is None else tuple(tool for tool in base if tool not in deny)


def find_path(
    start: Sequence[RunId],
    waits_for: Callable[[RunId], Iterable[RunId]],
    targets: Collection[RunId],
) -> tuple[RunId, ...] | None:
    """A path from ``start`` along ``waits_for`` that ends at one of ``targets``, or None.

    Iterative, each run once: a chain of a thousand runs is no recursion and no square.
    """
    came_from: dict[RunId, RunId | None] = dict.fromkeys(start)
    pending = list(reversed(start))
    while pending:
        current = pending.pop()
        if current in targets:
            path: list[RunId] = []
            step: RunId | None = current
            while step is not None:
                path.append(step)
                step = came_from[step]
            return tuple(reversed(path))
        for following in waits_for(current):
            if following not in came_from:
                came_from[following] = current
                pending.append(following)
    return None


def circular(path: Iterable[str]) -> UsageError:
    """``Circular dependency: a → b → a``."""
    return UsageError(f"Circular dependency: {' → '.join(path)}")


def check_request(run: Run, *, pending_at_requester: int, now_ms: int) -> None:
    """The limits of ``request_orchestrator`` (seed 000 §1; 3-tools).

    Raises:
        Forbidden: Guardrail ``rate_limited``; names the limit.
    """
    recent = [r for r in run.requests if now_ms - r.asked_at_ms < 60_000]
    if len(recent) >= REQUESTS_PER_MINUTE_MAX:
        raise _rate_limited(f"at most {REQUESTS_PER_MINUTE_MAX} questions per minute and run")
    if len(run.pending_requests) >= REQUESTS_PENDING_MAX:
        raise _rate_limited(f"at most {REQUESTS_PENDING_MAX} unanswered questions per run")
    if pending_at_requester >= REQUESTS_PENDING_AT_REQUESTER_MAX:
        raise _rate_limited(
            f"at most {REQUESTS_PENDING_AT_REQUESTER_MAX} unanswered questions at one requester"
        )


def _rate_limited(limit: str) -> Forbidden:
    return Forbidden(f"rate_limited: {limit}", guardrail="rate_limited")


def check_steer(run: Run, message: str, *, by: str, now_ms: int) -> None:
    """At most 4,000 characters, one per 2 s, never by the run itself (2-lifecycle §10).

    Raises:
        UsageError: Too long or empty.
        Forbidden: Too soon, or a run that steers itself.
    """
    if not message.strip():
        raise UsageError("message must not be empty")
    if len(message) > STEER_CHARS_MAX:
        raise UsageError(f"message has {len(message)} characters, at most {STEER_CHARS_MAX}")
    if by in {run.id, run.session_key}:
        raise Forbidden("a run cannot steer itself", guardrail="steer")
    if run.last_steer_ms is not None and now_ms - run.last_steer_ms < STEER_INTERVAL_MS:
        raise _rate_limited("one message per 2 seconds")


def pending_questions(runs: Iterable[Run]) -> tuple[tuple[Run, Request], ...]:
    """Every unanswered question of these runs, oldest first."""
    found = [(run, request) for run in runs for request in run.pending_requests]
    return tuple(sorted(found, key=lambda pair: pair[1].asked_at_ms))


def queue_order(run: Run) -> tuple[int, int, str]:
    """Higher priority first, then whoever has waited longest."""
    return (-run.spec.priority, run.phase_since_ms, run.id)


def holds_slot(run: Run) -> bool:
    """Whether the run counts against its lane: its agent works, or will again in one more turn."""
    if run.phase is Phase.ENDING:
        # Also without children or messages yet: a message can still come, and with it a turn.
        return run.resolved.abilities.resume
    return run.phase in HOLDS_SLOT


def lane_key(run: Run) -> tuple[str, int]:
    """The pool of slots a run waits for: its lane, apart for each depth.

    A child never waits for a slot that its own ancestor holds while it waits for the child:
    with one shared pool a lane of 1 would deadlock at the first nested spawn.
    """
    return (run.resolved.lane, run.depth)
