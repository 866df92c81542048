"""What a worker may do is the least of what its agent has and everybody above it may do."""

import pytest
from tests.builders import a_resolved

from subagents.domain.rules.ceilings import (
    check_message,
    decide,
    network_deny,
    of_run,
    placed,
    servers,
)
from subagents.domain.run.access import Access, AccessLevel, Ceiling, Keeper
from subagents.errors import Forbidden, UsageError

READ, WRITE, FULL = AccessLevel.READ, AccessLevel.WRITE, AccessLevel.FULL
LEVELS = (READ, WRITE, FULL)


def ceiling(level: AccessLevel, **more: object) -> Ceiling:
    return Ceiling(level=level, source="the caller", **more)  # type: ignore[arg-type]


def decided(
    declared: AccessLevel,
    *ceilings: Ceiling,
    asked: AccessLevel | None = None,
    cwd: str = "/w/project",
    may_ask: bool = True,
) -> tuple[Access, str | None]:
    return decide(declared, asked, agent_id="coder", cwd=cwd, ceilings=ceilings, may_ask=may_ask)


def above(access: Access | None) -> tuple[Ceiling, ...]:
    return of_run(a_resolved(agent_id="coder", access=access), "r-1")


@pytest.mark.requirement("access:least")
@pytest.mark.parametrize("declared", LEVELS)
@pytest.mark.parametrize("first", LEVELS)
@pytest.mark.parametrize("second", LEVELS)
def test_a_run_has_the_least_of_its_agent_and_of_everybody_above(
    declared: AccessLevel, first: AccessLevel, second: AccessLevel
) -> None:
    access, question = decided(declared, ceiling(first), ceiling(second))

    least = min(declared, first, second, key=lambda level: level.rank)
    assert access.level is least
    assert question is None
    assert (access.narrowed is None) == (least is declared)
    assert (access.below == "/w/project") == (least is WRITE)


@pytest.mark.requirement("access:least")
def test_whoever_may_write_in_one_place_gives_only_reading_elsewhere() -> None:
    near = ceiling(WRITE, below="/w")
    for cwd, level in (
        ("/w/project", WRITE),
        ("/w", WRITE),
        ("/workshop", READ),
        ("/w/../etc", READ),
        ("/", READ),
    ):
        access, _ = decided(FULL, near, cwd=cwd)
        assert access.level is level, cwd
    assert "may write only below /w" in (decided(FULL, near)[0].narrowed or "")


@pytest.mark.requirement("access:network")
def test_nobody_gets_the_network_of_whom_has_none() -> None:
    access, _ = decided(WRITE, ceiling(WRITE), ceiling(FULL, network=False))
    assert not access.network
    assert set(network_deny(access)) == {"shell", "web"}
    assert network_deny(decided(WRITE)[0]) == ()


@pytest.mark.requirement("access:agent")
def test_more_than_the_agent_has_is_refused_and_names_its_key() -> None:
    with pytest.raises(Forbidden, match=r"agents\.coder\.access") as refused:
        decided(READ, asked=WRITE)
    assert 'agents.coder.access = "write"' in (refused.value.hint or "")
    assert decided(FULL, asked=READ)[0] == Access(level=READ)


@pytest.mark.requirement("access:ask-a-person")
def test_more_than_the_caller_may_is_a_question_to_a_person() -> None:
    access, question = decided(FULL, ceiling(READ), asked=WRITE)
    assert access == Access(level=WRITE, below="/w/project")
    assert question is not None
    assert "May agent coder change files below /w/project" in question
    assert decided(FULL, ceiling(READ), asked=READ) == (Access(level=READ), None)


@pytest.mark.requirement("access:ask-a-person")
def test_a_worker_that_asks_for_more_than_it_has_is_refused_with_the_way_out() -> None:
    with pytest.raises(Forbidden, match='access "full" in /w/project is more than its') as refused:
        decided(FULL, ceiling(WRITE, below="/w"), asked=FULL, may_ask=False)
    assert "request_orchestrator" in (refused.value.hint or "")


@pytest.mark.requirement("access:inherited")
def test_a_run_is_the_ceiling_of_its_children() -> None:
    bound = Access(level=WRITE, below="/w", network=False)
    assert above(bound) == (
        Ceiling(level=WRITE, below="/w", network=False, source="run r-1 of agent coder"),
    )
    assert above(Access(level=FULL)) == ()
    assert above(None) == ()


@pytest.mark.requirement("access:mcp-servers")
def test_the_mcp_servers_of_a_run_are_those_that_everybody_above_it_may_have() -> None:
    (own,) = of_run(a_resolved(options={"mcp_servers": ["a", "b"]}), "r-1")
    other = Ceiling(level=FULL, source="a caller", servers=("b", "c"))
    assert servers(("a", "b", "c"), ()) == ("a", "b", "c")
    assert servers(("a", "b", "c"), (own, other)) == ("b",)
    assert servers(None, ()) is None
    assert servers(None, (own,)) == ()


@pytest.mark.requirement("access:messages")
@pytest.mark.parametrize(
    ("access", "sender", "is_allowed"),
    [
        (Access(level=WRITE, below="/w"), None, True),
        (None, ceiling(FULL), True),
        (None, ceiling(WRITE), False),
        (Access(level=READ), ceiling(READ), True),
        (Access(level=WRITE, below="/w"), ceiling(READ), False),
        (Access(level=WRITE, below="/w"), ceiling(WRITE, below="/"), True),
        (Access(level=WRITE, below="/w"), ceiling(WRITE, below="/other"), False),
        (Access(level=READ), ceiling(FULL, network=False), False),
        (Access(level=READ, network=False), ceiling(READ, network=False), True),
    ],
)
def test_a_message_is_taken_from_who_may_do_all_that_the_worker_may(
    access: Access | None,
    sender: Ceiling | None,
    is_allowed: bool,  # noqa: FBT001 - a parameter of the table
) -> None:
    if is_allowed:
        check_message(access, sender, run_id="r-1", cwd="/w")
        return
    with pytest.raises(Forbidden, match=r"run r-1 may .*: more than .* the caller may") as refused:
        check_message(access, sender, run_id="r-1", cwd="/w")
    assert refused.value.hint is not None


@pytest.mark.requirement("access:receipt")
def test_an_access_is_said_in_one_line() -> None:
    assert Access(level=FULL).text == "may do everything its user may; network"
    kept = Access(level=WRITE, below="/w", network=False, kept_by=Keeper.PROGRAM)
    assert kept.text == ("may read, and write below /w; no network; kept by its program's sandbox")
    assert "write nothing" in Access(level=READ).text
    assert placed(kept, "/tree").below == "/tree"
    assert placed(Access(level=READ), "/tree").below is None


def apart(*ceilings: Ceiling, cwd: str = "/w/project", **more: object) -> Access:
    found = {"is_apart": True, "declared": FULL, "asked": None, **more}
    return decide(agent_id="coder", cwd=cwd, ceilings=ceilings, may_ask=False, **found).access  # type: ignore[arg-type]


@pytest.mark.requirement("sandbox:access")
def test_in_a_sandbox_a_run_writes_where_it_works_and_has_no_network_unless_asked_for() -> None:
    access = apart()
    assert access == Access(level=WRITE, network=False, below="/w/project", sees="/w/project")
    assert access.is_bound
    assert access.text == "may read and write below /w/project alone (sandbox); no network"

    assert apart(network=True).network
    assert apart(network_unasked=True).network
    assert not apart(network=False, network_unasked=True).network
    reader = apart(asked=READ)
    assert (reader.level, reader.below, reader.sees) == (READ, None, "/w/project")
    assert reader.text.startswith("may read below /w/project alone, and write nothing")


@pytest.mark.requirement("sandbox:access")
def test_everything_and_a_sandbox_exclude_each_other() -> None:
    with pytest.raises(UsageError, match="exclude each other"):
        apart(asked=FULL)


@pytest.mark.requirement("sandbox:inherited")
def test_what_a_sandboxed_run_spawns_sees_what_it_sees_and_says_so() -> None:
    upper = above(apart())
    for is_apart in (False, True):
        child = apart(*upper, cwd="/w/project/below", is_apart=is_apart)
        assert (child.sees, child.below) == ("/w/project", "/w/project")
        assert (child.level, child.network) == (WRITE, False)
        assert placed(child, "/w/project/below") == child
        assert (child.narrowed is None) == is_apart
    for away in ("/w", "/w/projects", "/w/project/../other", "/"):
        with pytest.raises(Forbidden, match="not seen by its requester"):
            apart(*upper, cwd=away, is_apart=False)
    with pytest.raises(Forbidden, match="more than its requester may give"):
        apart(*upper, asked=FULL)
    with pytest.raises(Forbidden, match="has none"):
        apart(*upper, network=True)
    assert not apart(*upper, network_unasked=True).network


@pytest.mark.requirement("sandbox:inherited")
def test_a_sandboxed_run_sends_no_message_to_one_that_sees_more() -> None:
    (own,) = above(apart(asked=READ))
    near = apart(own, cwd="/w/project/below", is_apart=False)
    check_message(near, own, run_id="r-2", cwd="/w/project/below")
    offline = Access(level=READ, network=False)
    with pytest.raises(Forbidden, match="more than who sends it a message"):
        check_message(offline, own, run_id="r-2", cwd="/w/project")


@pytest.mark.requirement("access:network")
def test_a_run_without_a_sandbox_can_do_without_the_network() -> None:
    found = decide(
        FULL, None, agent_id="a", cwd="/w", ceilings=(), may_ask=True, network=False
    ).access
    assert found == Access(level=FULL, network=False)
    assert found.is_bound


@pytest.mark.requirement("access:links")
@pytest.mark.parametrize(
    ("below", "is_pinned"), [((None,), False), (("/w",), True), ((None, "/w"), True), ((), False)]
)
def test_where_a_run_works_is_pinned_below_whoever_may_write_in_one_place(
    below: tuple[str | None, ...], *, is_pinned: bool
) -> None:
    found = [Ceiling(level=AccessLevel.WRITE, source="x", below=each) for each in below]
    decision = decide(
        AccessLevel.WRITE,
        None,
        agent_id="a",
        cwd="/w/sub",
        ceilings=found,
        may_ask=False,
    )
    assert decision.access.is_pinned is is_pinned
    assert placed(decision.access, "/w/sub").is_pinned is is_pinned
    assert not placed(decision.access, "/state/worktrees/x").is_pinned
