"""May this spawn happen? Pure answers; the engine asks them in one fixed order."""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from subagents.domain.rules.tool_kinds import covers, intersection, kind_of, kinds_of
from subagents.domain.run.run import HOLDS_SLOT, Phase, Priority, Request, Run
from subagents.domain.run.spec import Abilities, ForEach, Mode, RunSpec
from subagents.domain.run.values import RunId
from subagents.errors import Forbidden, RateLimited, UsageError

ANY_AGENT: Final = "*"
REQUESTS_PER_MINUTE_MAX: Final = 5
REQUESTS_PENDING_MAX: Final = 3
REQUESTS_PENDING_AT_REQUESTER_MAX: Final = 20
NOTICES_MAX: Final = 1_000
NOTICES_PENDING_MAX: Final = 20
MINUTE_MS: Final = 60_000
PROGRESS_INTERVAL_MS: Final = 30_000
PROGRESS_LINES_MAX: Final = 100
"""The most lines that a run's progress log takes, over all its attempts."""
WAITING_CHILDREN_MAX: Final = 100
"""Open runs of one agent that wait for other runs, beyond its cap on active ones."""
STEER_CHARS_MAX: Final = 4_000
STEER_INTERVAL_MS: Final = 2_000
_ITEM: Final = re.compile(r"(?<!\$)\$\{\{\s*item\b")


def resolve_mode(spec: RunSpec) -> Mode:
    """Explicit wins; else ``thread: true`` means session; else run.

    Raises:
        UsageError: A session without a thread to stay bound to, or one for items; or a task that
            would be the same for each item.
    """
    if spec.for_each is not None and (spec.thread or spec.continues):
        text = "forEach is for new runs that end by themselves, without thread and continues"
        raise UsageError(text, details={"field": "forEach"})
    if spec.for_each is not None and not _ITEM.search(spec.task):
        text = "the task has no ${{ item }} where the item belongs: with forEach, each run gets one"
        raise UsageError(text, details={"field": "task"})
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


class Children(NamedTuple):
    """How many runs of one requester are open, or are asked for."""

    active: int
    """Not yet announcing or later, and waiting for no other run."""
    waiting: int
    """Waiting for other runs."""


def check_children(there: Children, asked: Children, max_children: int) -> None:
    """May an agent that has these children start those as well? Operators are never asked.

    Runs that wait for others do not count as active, so a chain of any length fits; they have
    another bound. Those whose wait is over keep their place under it while they are more than the
    cap allows: else waiting runs would be a way around it.

    Raises:
        Forbidden: Guardrail ``children``; says what to do.
    """
    free = max(max_children - there.active, 0)
    if asked.active > free:
        asked_for = f", {asked.active} more asked for" if asked.active > 1 else ""
        raise Forbidden(
            "sessions_spawn has reached max active children for this session "
            f"({there.active}/{max_children}{asked_for}; "
            "agents.defaults.subagents.max_children_per_agent)",
            guardrail="children",
            hint=(f"spawn at most {free} now, and the others" if free else "spawn it")
            + " when a child has ended (sessions_wait, or cancel one), or let them wait for others"
            " (dependsOn, chainAfter): those do not count; the user can raise the limit in"
            " subagents.toml",
        )
    over = max(there.active - max_children, 0)
    if asked.waiting and there.waiting + over + asked.waiting > WAITING_CHILDREN_MAX:
        raise Forbidden(
            "sessions_spawn has reached the most runs of this session that may wait for other runs "
            f"({there.waiting + over}/{WAITING_CHILDREN_MAX}, {asked.waiting} more asked for)",
            guardrail="children",
            hint="wait until some of them have ended (sessions_wait), then spawn the others",
        )


def check_items(asked: ForEach, max_children: int) -> None:
    """No more runs for items are at work at once than an agent may have children.

    Raises:
        Forbidden: Guardrail ``children``.
    """
    if (asked.max_parallel or asked.max_items) > max_children:
        raise Forbidden(
            f"at most {max_children} of forEach.maxItems may work at once "
            "(agents.defaults.subagents.max_children_per_agent)",
            guardrail="children",
            hint=f"give forEach.maxParallel: {max_children}",
        )


def check_allowed(agent_id: str, *, requester_agent: str, allow_agents: Iterable[str]) -> None:
    """An agent may always spawn itself; others must be on its list.

    Raises:
        Forbidden: Guardrail ``allow_agents``; names what is allowed.
    """
    # Itself always: an agent that splits its work among copies gains nothing by it.
    allowed = {name.strip().lower() for name in allow_agents}
    if agent_id == requester_agent or ANY_AGENT in allowed or agent_id in allowed:
        return
    listed = ", ".join(sorted(allowed)) or "none"
    raise Forbidden(
        f'agent "{requester_agent}" may not spawn "{agent_id}" (allowed: {listed}; '
        f"agents.{requester_agent}.subagents.allow_agents)",
        guardrail="allow_agents",
        hint=f"name an allowed one, or ask the user to add it to "
        f"agents.{requester_agent}.subagents.allow_agents in subagents.toml",
    )


def effective_tools(
    agent_tools: tuple[str, ...] | None,
    *,
    allow: tuple[str, ...] | None,
    deny: Collection[str],
    inherited_allow: tuple[str, ...] | None,
) -> tuple[str, ...] | None:
    """``(agent's tools ∩ toolsAllow) − toolsDeny``; None = unscoped, all tools of the runtime.

    Args:
        agent_tools: From the configuration; None = the agent has no list.
        allow: The spawn's ``toolsAllow``.
        deny: The spawn's ``toolsDeny`` and everything inherited.
        inherited_allow: What everybody above it may use; None = all.

    Raises:
        Forbidden: Guardrail ``tools``: ``toolsAllow`` names tools beyond the agent's.
    """
    base = intersection(agent_tools, inherited_allow)
    if allow is not None:
        # Refused and not left out: an agent that asked for a tool would count on having it.
        offenders = [] if base is None else [tool for tool in allow if not covers(base, tool)]
        if offenders:
            whose = "the agent's tools" if inherited_allow is None else "what its requester may use"
            raise Forbidden(
                f"toolsAllow can only narrow: {', '.join(offenders)} not among {whose} "
                f"({', '.join(base or ()) or 'none'})",
                guardrail="tools",
                hint="leave these out of toolsAllow",
            )
        base = allow
    if base is None:
        return None
    kinds = kinds_of(deny)
    return tuple(tool for tool in base if tool not in deny and kind_of(tool) not in kinds)


def check_usable(spec: RunSpec, runtime: str, abilities: Abilities) -> None:
    """Refuse what this runtime, or this version, could only ignore."""
    for name, value in (("model", spec.model), ("thinking", spec.thinking)):
        if value is not None and not abilities.model:
            raise UsageError(f'runtime "{runtime}" takes no {name}')
    if (spec.thread or spec.mode is Mode.SESSION) and not abilities.resume:
        field = "thread" if spec.thread else "mode"
        raise UsageError(
            f'{field}: runtime "{runtime}" cannot continue a session, so none can stay open',
            hint="leave thread and mode out, or name an agent whose program keeps sessions "
            "(runtimes claude-code, codex, llm, and acp where the program can)",
            details={"field": field},
        )


def find_path(
    start: Sequence[RunId],
    waits_for: Callable[[RunId], Iterable[RunId]],
    targets: Collection[RunId],
) -> tuple[RunId, ...] | None:
    """A path from ``start`` along ``waits_for`` that ends at one of ``targets``, or None.

    Iterative, each run once: a chain of a thousand runs is no recursion and no square.
    """
    # Depth first and not the shortest path: any circle is refused, and the message shows one.
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
    """The limits of ``request_orchestrator``.

    Args:
        run: Whose worker asks.
        pending_at_requester: Unanswered questions of all runs in the inbox this one goes to.
        now_ms: Now; a clock that was set back forgets the minute before.

    Raises:
        RateLimited: Names the limit; nothing was stored.
    """
    recent = [
        question.asked_at_ms
        for question in _questions(run.questions.requests)
        if 0 <= now_ms - question.asked_at_ms < MINUTE_MS
    ]
    if len(recent) >= REQUESTS_PER_MINUTE_MAX:
        raise RateLimited(
            f"at most {REQUESTS_PER_MINUTE_MAX} questions per minute and run",
            retry_after_s=_seconds(recent[-REQUESTS_PER_MINUTE_MAX] + MINUTE_MS - now_ms),
        )
    if len(_questions(run.pending_requests)) >= REQUESTS_PENDING_MAX:
        raise RateLimited(f"at most {REQUESTS_PENDING_MAX} unanswered questions per run")
    if pending_at_requester >= REQUESTS_PENDING_AT_REQUESTER_MAX:
        raise RateLimited(
            f"at most {REQUESTS_PENDING_AT_REQUESTER_MAX} unanswered questions at one requester"
        )


def check_notice(run: Run, priority: Priority) -> None:
    """The limits of ``notify_parent``: an inbox that one worker floods is no longer read.

    Raises:
        RateLimited: Names the limit; nothing was stored.
    """
    if run.questions.notices >= NOTICES_MAX:
        raise RateLimited(f"at most {NOTICES_MAX} notices per run")
    unanswered = len(run.pending_requests) - len(_questions(run.pending_requests))
    if priority is not Priority.INFO and unanswered >= NOTICES_PENDING_MAX:
        raise RateLimited(
            f"at most {NOTICES_PENDING_MAX} unanswered question or blocker notices per run"
        )


def progress_wait_s(run: Run, now_ms: int) -> int:
    """Whole seconds until the attempt's next progress is taken; 0 = now.

    One per 30 s and worker: a new attempt does not wait for the one before, and a clock that was
    set back makes no worker wait longer.
    """
    last_ms = run.progress.paced_at_ms
    if last_ms is None or last_ms < run.attempt.times.requested_at_ms:
        return 0
    passed_ms = now_ms - last_ms
    return _seconds(PROGRESS_INTERVAL_MS - passed_ms) if passed_ms >= 0 else 0


def repeated_question(run: Run, asked: Request) -> Request | None:
    """The same question of the same attempt that is unanswered, or the very same call.

    A worker, or its bridge, that died while it waited asks again; its requester is asked once. A
    call that is repeated finds its question also when the answer came meanwhile.
    """
    for known in _questions(run.questions.requests):
        is_same_call = asked.call_id is not None and known.call_id == asked.call_id
        if is_same_call and known.attempt == asked.attempt:
            return known
    for known in _questions(run.pending_requests):
        same_words = (known.question, known.context, known.options, known.default_answer) == (
            *(asked.question, asked.context, asked.options, asked.default_answer),
        )
        if same_words and known.attempt == asked.attempt:
            return known
    return None


def _questions(requests: Iterable[Request]) -> tuple[Request, ...]:
    """Without the notices, whose sender does not wait."""
    return tuple(request for request in requests if request.priority is None)


def _seconds(milliseconds: int) -> int:
    return max(-(-milliseconds // 1000), 0)


def check_steer(run: Run, message: str, *, by: str, now_ms: int) -> None:
    """At most 4,000 characters, one per 2 s, never by the run itself.

    Raises:
        UsageError: Too long or empty.
        Forbidden: A run that steers itself.
        RateLimited: Too soon.
    """
    if not message.strip():
        raise UsageError("message must not be empty")
    if len(message) > STEER_CHARS_MAX:
        raise UsageError(f"message has {len(message)} characters, at most {STEER_CHARS_MAX}")
    # Each message may be a turn: an agent that writes to itself would never end.
    if by in {run.id, run.session_key}:
        raise Forbidden("a run cannot steer itself", guardrail="steer")
    passed_ms = now_ms - (run.control.last_steer_ms or 0)
    if 0 <= passed_ms < STEER_INTERVAL_MS:  # less: the clock was set back
        left_s = _seconds(STEER_INTERVAL_MS - passed_ms)
        raise RateLimited("one message per 2 seconds", retry_after_s=left_s)


def question_count(runs: Iterable[Run]) -> int:
    """How many questions of these runs are unanswered; notices are none."""
    return sum(len(_questions(run.pending_requests)) for run in runs)


def pending_requests(runs: Iterable[Run]) -> tuple[tuple[Run, Request], ...]:
    """Everything these runs want answered, notices too, oldest first."""
    found = [(run, request) for run in runs for request in run.pending_requests]
    return tuple(sorted(found, key=lambda pair: pair[1].asked_at_ms))


def priority(run: Run) -> int:
    """Higher starts first."""
    given = run.control.priority
    return run.spec.priority if given is None else given


QueueOrder: TypeAlias = tuple[int, int, int, str]


def queue_order(run: Run) -> QueueOrder:
    """Higher priority first, then whoever has waited longest, then by the order of its plan."""
    step = run.resolved.step
    position = 0 if step is None else step.position
    return (-priority(run), run.times.phase_since_ms, position, run.id)


def holds_slot(run: Run) -> bool:
    """Whether the run counts against its lane: its agent works, or will again in one more turn."""
    if run.phase is Phase.ENDING:
        # Also without children or messages yet: a message can still come, and with it a turn.
        return run.resolved.abilities.resume and run.spec.for_each is None
    return run.phase in HOLDS_SLOT


class LaneUse(NamedTuple):
    """How many slots of a run's lane are taken."""

    used: int
    slots: int
    limit: str | None = None
    """Why none of them is given to the run: ``waiting for anthropic: 429, until 14:05:10``."""
    given: int | None = None
    """How many of them its node may use in a cluster, of which ``used`` are; None = all."""


def lane_key(run: Run) -> tuple[str, int]:
    """The pool of slots a run waits for: its lane, apart for each depth.

    A child never waits for a slot that its own ancestor holds while it waits for the child:
    with one shared pool a lane of 1 would deadlock at the first nested spawn.
    """
    return (run.resolved.lane, run.lineage.depth)
