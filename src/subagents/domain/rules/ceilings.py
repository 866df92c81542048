"""How much a worker may do: the least of what its agent has and everybody above it may do; pure.

One rule for all ceilings, whoever they come from: an outside caller that has a sandbox, or a
run that spawns. Where a spawn names no level it is narrowed, and says so; where it names one that
is too high, it is refused or, where a person can allow it, a question to that person.
"""

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from subagents.domain.run.access import Access, AccessLevel, Ceiling
from subagents.domain.run.spec import ResolvedAgent
from subagents.domain.run.values import replace
from subagents.errors import Forbidden, UsageError

GUARDRAIL: Final = "access"
NETWORK_KINDS: Final = ("shell", "web")
"""Kinds of tools that reach the network: a worker that must not has none of them."""
_MAY: Final = {
    AccessLevel.READ: "only read",
    AccessLevel.WRITE: "write where it works",
    AccessLevel.FULL: "do everything",
}


class Decision(NamedTuple):
    """What a run may do, and whether a person must allow it first."""

    access: Access
    question: str | None = None
    """What to ask a person; None = nothing: it is within every ceiling."""


def decide(
    declared: AccessLevel,
    asked: AccessLevel | None,
    *,
    agent_id: str,
    cwd: str,
    ceilings: Sequence[Ceiling],
    may_ask: bool,
    is_apart: bool = False,
    network: bool | None = None,
    network_unasked: bool | None = None,
) -> Decision:
    """What a run may do.

    Args:
        declared: What its agent may do at most.
        asked: What the spawn names; None = as much as is allowed.
        agent_id: The agent's.
        cwd: Where it will work; absolute.
        ceilings: Of everybody above it; empty = a person, or a caller with unknown limits.
        may_ask: Whether a person can be asked to go over a ceiling.
        is_apart: Whether it shall see nothing of its user's but ``cwd``; below whoever sees one
            directory alone it sees that one.
        network: Whether the spawn asks for the network; None = it does not say.
        network_unasked: Whether it has one then, if everybody above it has; None = unless it is
            apart.

    Raises:
        Forbidden: Guardrail ``access``: more than the agent has, or than a run above it may give.
        UsageError: It shall do everything, and see nothing.
    """
    if asked is not None and asked.rank > declared.rank:
        raise Forbidden(
            f'access "{asked}" is more than agent "{agent_id}" has ("{declared}"; '
            f"agents.{agent_id}.access)",
            guardrail=GUARDRAIL,
            hint=f'leave access out, or ask the user to set agents.{agent_id}.access = "{asked}"',
        )
    # Mostly a person spawns, and there are no ceilings: then nothing below is computed.
    is_pinned = is_kept_near(ceilings) if ceilings else False
    views = [each for each in ceilings if each.sees is not None] if ceilings else []
    for each in views:
        _check_view(each, cwd)
    # The very directory, not one below it: whoever works there could turn that into a link.
    seen = [each.sees for each in views if each.sees is not None] if views else []
    sees = max(seen, key=len) if seen else cwd if is_apart else None
    if sees is not None and asked is AccessLevel.FULL and not views:
        raise UsageError(
            'access "full" and isolation "sandbox" exclude each other',
            hint='leave access out, which is "write" in a sandbox',
            details={"field": "access"},
        )
    # "full" in a sandbox would be none; a level that was not asked for is lowered without a word.
    if sees is not None and asked is None:
        declared = min(declared, AccessLevel.WRITE, key=_rank)
    wanted = declared if asked is None else asked
    over = [each for each in ceilings if is_over(wanted, each, cwd=cwd)] if ceilings else []
    offline = next((each for each in ceilings if not each.network), None) if ceilings else None
    if network and offline is not None:
        raise Forbidden(
            f'network "host" is more than its requester may give: {offline.source} has none',
            guardrail=GUARDRAIL,
            hint="leave network out, or ask the user to spawn it",
        )
    if network is None:
        network = sees is None if network_unasked is None else network_unasked
    has_network = network and offline is None
    if asked is not None and over:
        if not may_ask:
            raise _refused(asked, over[0], cwd)
        question = (
            f"May agent {agent_id} {_in_words(asked, cwd)}? {over[0].source} may itself "
            f"{_limit(over[0])}, and asks for more."
        )
        below = (sees or cwd) if asked is AccessLevel.WRITE else None
        # A person's yes goes over the ceilings' network, too, but not over what was asked for.
        access = Access(level=asked, network=network, below=below, sees=sees, is_pinned=is_pinned)
        return Decision(access, question)
    level = wanted
    if ceilings:
        level = min((_most(wanted, each, cwd=cwd) for each in ceilings), key=_rank)
    narrowed = f"{over[0].source} may {_limit(over[0])}" if over else None
    below = (sees or cwd) if level is AccessLevel.WRITE else None
    if views and not is_apart:
        narrowed = f"{views[0].source} sees only what is below {views[0].sees}"
    return Decision(
        Access(
            level=level,
            network=has_network,
            below=below,
            sees=sees,
            narrowed=narrowed,
            is_pinned=is_pinned,
        )
    )


def is_kept_near(ceilings: Sequence[Ceiling]) -> bool:
    """Whether somebody above a run may write in one place only, so that it matters where it is.

    Its working directory and ``Ceiling.below`` must then be without symbolic links: a worker can
    make one that leads away from where it may write.
    """
    return any(each.below is not None for each in ceilings)


def placed(access: Access, cwd: str) -> Access:
    """The access of a run that works there: its worktree may be elsewhere."""
    if access.below is None or access.sees is not None:
        return access
    # A worktree lies in a folder of ours, where no worker can have left a link.
    return replace(access, below=cwd, is_pinned=access.is_pinned and cwd == access.below)


def _check_view(ceiling: Ceiling, cwd: str) -> None:
    """Refuse a working directory that whoever spawns does not see itself.

    Raises:
        Forbidden: Guardrail ``access``.
    """
    if ceiling.sees is not None and not is_within(cwd, ceiling.sees):
        raise Forbidden(
            f"cwd {cwd} is not seen by its requester: {ceiling.source} sees only what is below "
            f"{ceiling.sees}",
            guardrail=GUARDRAIL,
            hint=f"name a cwd below {ceiling.sees}",
        )


def is_over(wanted: AccessLevel, ceiling: Ceiling, *, cwd: str) -> bool:
    """Whether that level, working there, is more than the ceiling allows."""
    return _most(wanted, ceiling, cwd=cwd).rank < wanted.rank


def of_run(above: ResolvedAgent, run_id: str) -> tuple[Ceiling, ...]:
    """What the children of a run may do at most; none = everything."""
    access, servers = above.access or Access(level=AccessLevel.FULL), above.mcp_servers
    if not access.is_bound and servers is None:
        return ()
    ceiling = Ceiling(
        level=access.level,
        network=access.network,
        below=access.below,
        sees=access.sees,
        servers=servers,
        source=f"run {run_id} of agent {above.agent_id}",
    )
    return (ceiling,)


def servers(own: tuple[str, ...] | None, ceilings: Sequence[Ceiling]) -> tuple[str, ...] | None:
    """The MCP servers of a run: those of its agent that everybody above it may have, too.

    Below somebody who may have certain ones alone an agent that names none has none.
    """
    for each in ceilings:
        if each.servers is not None:
            own = tuple(name for name in own or () if name in each.servers)
    return own


def check_message(access: Access | None, ceiling: Ceiling | None, *, run_id: str, cwd: str) -> None:
    """A message can make a worker do whatever it may: its sender must be allowed that, too.

    Args:
        access: The worker's; None = of a run from before there were levels.
        ceiling: The sender's; None = a person, or a caller with unknown limits.
        run_id: The worker's run.
        cwd: Where that run works; absolute.

    Raises:
        Forbidden: Guardrail ``access``: the worker may do more than the sender.
    """
    if ceiling is None:
        return
    # Otherwise a worker that may only read could have its wish done by a sibling that may write.
    may = Access(level=AccessLevel.FULL) if access is None else access
    reaches_out = may.network and not ceiling.network
    sees_more = ceiling.sees is not None and (
        may.sees is None or not is_within(may.sees, ceiling.sees)
    )
    if not reaches_out and not sees_more and not is_over(may.level, ceiling, cwd=cwd):
        return
    limit = _limit(ceiling) + ("" if ceiling.network else ", without the network")
    raise Forbidden(
        f"run {run_id} {may.text}: more than who sends it a message, for {ceiling.source} may "
        f"{limit}",
        guardrail=GUARDRAIL,
        hint="ask the user to send it, or spawn a run of your own with the message as its task",
    )


def network_deny(access: Access) -> tuple[str, ...]:
    """The kinds of tools that go where the network is not allowed and tools must keep it so."""
    return () if access.network else NETWORK_KINDS


def _most(wanted: AccessLevel, ceiling: Ceiling, *, cwd: str) -> AccessLevel:
    level = min(wanted, ceiling.level, key=_rank)
    is_away = ceiling.below is not None and not is_within(cwd, ceiling.below)
    # Whoever may write in one place only has read elsewhere.
    return AccessLevel.READ if level is AccessLevel.WRITE and is_away else level


def _rank(level: AccessLevel) -> int:
    return level.rank


def is_within(place: str, root: str) -> bool:
    """Whether an absolute path is that directory or below it, by its words alone."""
    # Nothing is opened here: a ".." could lead anywhere.
    path = PurePosixPath(place)
    return ".." not in path.parts and path.is_relative_to(root)


def _limit(ceiling: Ceiling) -> str:
    if ceiling.level is AccessLevel.WRITE and ceiling.below is not None:
        return f"write only below {ceiling.below}"
    return _MAY[ceiling.level]


def _in_words(level: AccessLevel, cwd: str) -> str:
    if level is AccessLevel.WRITE:
        return f"change files below {cwd} and run commands there"
    return "do everything you may, outside of any sandbox"


def _refused(asked: AccessLevel, ceiling: Ceiling, cwd: str) -> Forbidden:
    return Forbidden(
        f'access "{asked}" in {cwd} is more than its requester may give: {ceiling.source} may '
        f"{_limit(ceiling)}",
        guardrail=GUARDRAIL,
        hint="leave access out, or ask your requester (request_orchestrator)",
    )
