"""What a worker may do is the least of what its agent has and everybody above it may do."""

import pytest

from subagents.domain.rules.ceilings import check_message, decide, network_deny, of_run, placed
from subagents.domain.run.access import Access, AccessLevel, Ceiling, Keeper, in_words
from subagents.errors import Forbidden

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
    assert of_run(bound, "r-1", "coder") == (
        Ceiling(level=WRITE, below="/w", network=False, source="run r-1 of agent coder"),
    )
    assert of_run(Access(level=FULL), "r-1", "coder") == ()
    assert of_run(None, "r-1", "coder") == ()


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
    assert in_words(Access(level=FULL)) == "may do everything its user may; network"
    kept = Access(level=WRITE, below="/w", network=False, kept_by=Keeper.PROGRAM)
    assert in_words(kept) == (
        "may read, and write below /w; no network; kept by its program's sandbox"
    )
    assert "write nothing" in in_words(Access(level=READ))
    assert placed(kept, "/tree").below == "/tree"
    assert placed(Access(level=READ), "/tree").below is None
