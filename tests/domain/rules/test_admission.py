"""The guardrails of a spawn and of messages, with their exact words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import NOW_MS, RUN, Life, a_resolved

from subagents.domain.rules.admission import (
    WAITING_CHILDREN_MAX,
    Children,
    check_allowed,
    check_children,
    check_depth,
    check_notice,
    check_request,
    check_steer,
    check_usable,
    circular,
    effective_tools,
    find_path,
    lane_key,
    pending_requests,
    progress_wait_s,
    queue_order,
    resolve_mode,
)
from subagents.domain.run.events import ParentNotified
from subagents.domain.run.run import (
    Answer,
    Decision,
    Priority,
    Progress,
    ProgressLog,
    Questions,
    Run,
)
from subagents.domain.run.spec import Abilities, ForEach, Mode, PlanStep, RunSpec
from subagents.domain.run.values import RunId, replace
from subagents.errors import Forbidden, RateLimited, UsageError

ONE = Children(active=1, waiting=0)


@pytest.mark.requirement("spawn:mode", "spawn:modes", "spawn:session-needs-thread")
@pytest.mark.parametrize(
    ("mode", "thread", "expected"),
    [
        (None, False, Mode.RUN),
        (None, True, Mode.SESSION),
        (Mode.RUN, True, Mode.RUN),
        (Mode.RUN, False, Mode.RUN),
        (Mode.SESSION, True, Mode.SESSION),
    ],
)
def test_an_explicit_mode_wins_and_a_thread_means_session(
    mode: Mode | None, expected: Mode, *, thread: bool
) -> None:
    assert resolve_mode(RunSpec(task="t", mode=mode, thread=thread)) is expected


@pytest.mark.requirement("spawn:mode", "spawn:modes", "spawn:session-needs-thread")
def test_a_session_without_a_thread_is_refused_in_these_words() -> None:
    with pytest.raises(UsageError) as refused:
        resolve_mode(RunSpec(task="t", mode=Mode.SESSION))

    assert refused.value.message == (
        'mode="session" requires thread=true so the subagent can stay bound to a thread.'
    )


@pytest.mark.requirement("for-each:refused")
@pytest.mark.parametrize("task", ["look", "$${{ item }}", "${{ items }}"])
def test_a_task_that_is_the_same_for_each_item_is_refused_at_the_spawn(task: str) -> None:
    spec = RunSpec(task=task, for_each=ForEach(run="find"))
    with pytest.raises(UsageError, match="forEach") as refused:
        resolve_mode(spec)
    assert refused.value.details == {"field": "task"}
    for named in ("${{item}}", "fix ${{ item.file }}", "${{ item{/} }}"):
        resolve_mode(replace(spec, task=named))


@pytest.mark.requirement("spawn:depth", "spawn:depth-key")
def test_the_depth_limit_is_told_in_these_words() -> None:
    check_depth(0, 1)
    with pytest.raises(Forbidden) as refused:
        check_depth(1, 1)

    assert refused.value.message == (
        "sessions_spawn is not allowed at this depth "
        "(current depth: 1, max: 1; agents.defaults.subagents.max_spawn_depth)"
    )
    assert refused.value.to_wire()["details"] == {"guardrail": "depth"}


@pytest.mark.requirement("spawn:children", "spawn:children-per-session")
def test_the_children_limit_is_told_in_these_words_with_what_to_do() -> None:
    check_children(Children(4, 0), ONE, 5)
    with pytest.raises(Forbidden) as refused:
        check_children(Children(5, 0), ONE, 5)

    assert refused.value.message == (
        "sessions_spawn has reached max active children for this session "
        "(5/5; agents.defaults.subagents.max_children_per_agent)"
    )
    assert refused.value.guardrail == "children"
    assert refused.value.hint is not None
    assert refused.value.hint.startswith("spawn it when a child has ended (sessions_wait")

    with pytest.raises(Forbidden, match=r"\(3/5, 8 more asked for; ") as batch:
        check_children(Children(3, 0), Children(8, 0), 5)
    assert str(batch.value.hint).startswith("spawn at most 2 now, and the others when")


@pytest.mark.requirement("spawn:children:waiting")
def test_runs_that_wait_for_others_have_a_bound_of_their_own() -> None:
    check_children(Children(5, 0), Children(0, WAITING_CHILDREN_MAX), 5)
    check_children(Children(0, WAITING_CHILDREN_MAX), ONE, 5)
    with pytest.raises(Forbidden, match=r"\(100/100, 1 more asked for\)"):
        check_children(Children(5, WAITING_CHILDREN_MAX), Children(0, 1), 5)


@pytest.mark.requirement("spawn:children:waiting")
def test_runs_whose_wait_is_over_keep_their_place_while_they_are_above_the_cap() -> None:
    """Else an agent could have any number: let them wait, release them, and again."""
    released = Children(WAITING_CHILDREN_MAX, 0)
    check_children(released, Children(0, 5), 5)
    with pytest.raises(Forbidden, match=r"\(95/100, 6 more asked for\)"):
        check_children(released, Children(0, 6), 5)


@pytest.mark.requirement("spawn:allow-agents", "spawn:allow-agents-names")
@pytest.mark.parametrize(
    ("allow", "is_allowed"),
    [((), False), (("*",), True), ((" * ",), True), ((" Helper ",), True), (("other",), False)],
)
def test_another_agent_must_be_on_the_requesters_list(
    allow: tuple[str, ...], *, is_allowed: bool
) -> None:
    if is_allowed:
        check_allowed("helper", requester_agent="main", allow_agents=allow)
        return
    with pytest.raises(Forbidden) as refused:
        check_allowed("helper", requester_agent="main", allow_agents=allow)
    assert refused.value.message == (
        f'agent "main" may not spawn "helper" (allowed: {", ".join(allow) or "none"}; '
        "agents.main.subagents.allow_agents)"
    )


@pytest.mark.requirement("spawn:allow-agents", "spawn:allow-agents-names")
def test_an_agent_may_always_spawn_itself() -> None:
    check_allowed("main", requester_agent="main", allow_agents=())


@pytest.mark.requirement("tools:effective")
@pytest.mark.parametrize(
    ("own", "allow", "deny", "inherited", "effective"),
    [
        (None, None, (), None, None),
        (("a", "b"), None, (), None, ("a", "b")),
        (("a", "b"), ("b",), (), None, ("b",)),
        (("a", "b"), None, ("a",), None, ("b",)),
        (("a", "b"), ("a", "b"), ("a",), None, ("b",)),
        (("a", "b"), (), (), None, ()),
        (None, ("x",), (), None, ("x",)),
        (("a", "b", "c"), None, (), ("b", "c"), ("b", "c")),
        (None, None, ("b",), ("a", "b"), ("a",)),
        (("a", "b"), None, (), (), ()),
    ],
)
def test_effective_tools_are_the_agents_cut_with_allow_less_deny(
    own: tuple[str, ...] | None,
    allow: tuple[str, ...] | None,
    deny: tuple[str, ...],
    inherited: tuple[str, ...] | None,
    effective: tuple[str, ...] | None,
) -> None:
    assert effective_tools(own, allow=allow, deny=deny, inherited_allow=inherited) == effective


@pytest.mark.requirement("tools:never-wider")
def test_widening_is_refused_and_the_offenders_are_listed() -> None:
    with pytest.raises(Forbidden) as refused:
        effective_tools(("a",), allow=("a", "x", "y"), deny=(), inherited_allow=None)

    assert refused.value.message == (
        "toolsAllow can only narrow: x, y not among the agent's tools (a)"
    )


TOOLS = st.one_of(st.none(), st.lists(st.sampled_from("abcd"), unique=True).map(tuple))


@pytest.mark.requirement("tools:never-wider")
@given(TOOLS, TOOLS, st.frozensets(st.sampled_from("abcd")), TOOLS)
def test_no_combination_gives_a_tool_that_somebody_withheld(
    own: tuple[str, ...] | None,
    allow: tuple[str, ...] | None,
    deny: frozenset[str],
    inherited: tuple[str, ...] | None,
) -> None:
    try:
        found = effective_tools(own, allow=allow, deny=deny, inherited_allow=inherited)
    except Forbidden:
        return
    if found is not None:
        assert not set(found) & deny
        for limit in (own, allow, inherited):
            assert limit is None or set(found) <= set(limit)


@pytest.mark.requirement("dependencies:cycles")
def test_a_cycle_is_found_and_spelled_out() -> None:
    edges = {"a": ["b"], "b": ["c"], "c": ["a", "d"], "d": []}
    names = {name: RunId(name) for name in edges}

    path = find_path([names["b"]], lambda run: [names[n] for n in edges[run]], {names["a"]})

    assert path == ("b", "c", "a")
    assert circular(("a", *path)).message == "Circular dependency: a → b → c → a"
    assert find_path([names["d"]], lambda run: [], {names["a"]}) is None


@pytest.mark.requirement("dependencies:cycles")
def test_a_chain_of_thousands_is_no_recursion_and_a_diamond_no_explosion() -> None:
    chain = find_path([RunId("0")], lambda run: [RunId(str(int(run) + 1))], {RunId("2000")})
    assert chain is not None
    assert len(chain) == 2001

    looked = 0

    def twice(run: RunId) -> list[RunId]:
        nonlocal looked
        looked += 1
        return [RunId(str(int(run) + 1))] * 2 if int(run) < 200 else []

    assert find_path([RunId("0")], twice, set()) is None
    assert looked == 201


def asking(run_number: int, asked: int, *, at_ms: int = NOW_MS) -> Life:
    life = Life.begin().start()
    life.at_ms = at_ms
    for number in range(asked):
        life.ask(number + 1)
    return life


@pytest.mark.requirement("requests:limits", "requests:limits-typed")
def test_the_three_limits_of_questions_name_themselves() -> None:
    with pytest.raises(RateLimited) as refused:
        check_request(asking(1, 3).run, pending_at_requester=3, now_ms=NOW_MS)
    assert refused.value.message == "rate_limited: at most 3 unanswered questions per run"
    assert refused.value.details == {
        "guardrail": "rate_limited",
        "limit": "at most 3 unanswered questions per run",
    }
    with pytest.raises(RateLimited, match="at most 20 unanswered questions at one requester"):
        check_request(asking(1, 0).run, pending_at_requester=20, now_ms=NOW_MS)

    answer = Answer(decision=Decision.ANSWER, text="x", by="me", at_ms=NOW_MS)
    answered = asking(1, 5).run
    requests = tuple(replace(each, answer=answer) for each in answered.questions.requests)
    answered = replace(answered, questions=Questions(requests=requests))
    with pytest.raises(RateLimited) as refused:
        check_request(answered, pending_at_requester=0, now_ms=NOW_MS + 58_001)
    assert refused.value.to_wire() == {
        "code": "rate_limited",
        "message": "rate_limited: at most 5 questions per minute and run, again in 2 s",
        "details": {
            "guardrail": "rate_limited",
            "limit": "at most 5 questions per minute and run",
            "retryAfterSeconds": 2,
        },
        "retryable": True,
        "hint": None,
    }
    check_request(answered, pending_at_requester=0, now_ms=NOW_MS + 60_000)
    # A clock that was set back makes nobody wait for the future.
    check_request(answered, pending_at_requester=0, now_ms=NOW_MS - 1)


def noticing(count: int, priority: Priority) -> Run:
    life = Life.begin().start()
    for _ in range(count):
        life.apply(ParentNotified(at_ms=NOW_MS, message="look", priority=priority))
    return life.run


@pytest.mark.requirement("notices:limits")
def test_notices_have_limits_of_their_own() -> None:
    blocked = noticing(20, Priority.BLOCKER)
    with pytest.raises(RateLimited, match="at most 20 unanswered question or blocker notices"):
        check_notice(blocked, Priority.QUESTION)
    check_notice(blocked, Priority.INFO)
    check_request(blocked, pending_at_requester=0, now_ms=NOW_MS)
    check_notice(noticing(50, Priority.INFO), Priority.BLOCKER)
    with pytest.raises(RateLimited, match="at most 1000 notices per run"):
        check_notice(replace(blocked, questions=Questions(notices=1_000)), Priority.INFO)


@pytest.mark.requirement("progress:rate-limited")
@pytest.mark.parametrize(
    ("passed_ms", "wait_s"), [(0, 30), (1, 30), (29_000, 1), (29_999, 1), (30_000, 0), (-5, 0)]
)
def test_the_next_progress_waits_for_what_is_left_of_thirty_seconds(
    passed_ms: int, wait_s: int
) -> None:
    run = Life.begin().start().run
    assert progress_wait_s(run, NOW_MS) == 0
    latest = Progress(phase="p", updated_at_ms=NOW_MS)
    run = replace(run, progress=ProgressLog(latest=latest, paced_at_ms=NOW_MS))

    assert progress_wait_s(run, NOW_MS + passed_ms) == wait_s


@pytest.mark.requirement("steer:limits")
def test_a_message_is_bounded_in_size_and_pace_and_not_from_the_run_itself() -> None:
    run = Life.begin().steer("first").run

    check_steer(run, "x" * 4_000, by="me", now_ms=NOW_MS + 2_000)
    with pytest.raises(UsageError, match="message has 4001 characters, at most 4000"):
        check_steer(run, "x" * 4_001, by="me", now_ms=NOW_MS + 2_000)
    with pytest.raises(UsageError, match="message must not be empty"):
        check_steer(run, " \n", by="me", now_ms=NOW_MS + 2_000)
    with pytest.raises(Forbidden, match="one message per 2 seconds"):
        check_steer(run, "x", by="me", now_ms=NOW_MS + 1_999)
    for itself in (RUN, run.session_key):
        with pytest.raises(Forbidden, match="a run cannot steer itself"):
            check_steer(run, "x", by=itself, now_ms=NOW_MS + 2_000)


@pytest.mark.requirement("steer:limits", "timers:clock-steps")
def test_no_message_has_to_wait_for_a_clock_that_was_set_back() -> None:
    check_steer(Life.begin().steer("first").run, "x", by="me", now_ms=NOW_MS - 3_600_000)


@pytest.mark.requirement("requests:oldest-first")
def test_open_questions_are_listed_oldest_first() -> None:
    young, old = asking(1, 1, at_ms=NOW_MS + 9), asking(2, 2)

    found = pending_requests([young.run, old.run])

    assert [request.asked_at_ms for _, request in found] == [NOW_MS, NOW_MS, NOW_MS + 9]


@pytest.mark.requirement("lanes:order")
def test_higher_priority_goes_first_then_who_waited_longest() -> None:
    urgent = Life.begin(RunSpec(task="t", priority=5), at_ms=NOW_MS + 9, run_id=RunId("r-u")).run
    early = Life.begin(run_id=RunId("r-z")).run
    late = Life.begin(at_ms=NOW_MS + 1, run_id=RunId("r-a")).run

    assert sorted([late, early, urgent], key=queue_order) == [urgent, early, late]


@pytest.mark.requirement("plan:jobs:order")
def test_steps_of_a_plan_stand_in_its_order_whatever_their_ids_are() -> None:
    runs = [
        Life.begin(
            resolved=a_resolved(step=PlanStep(plan="p", position=at)), run_id=RunId(name)
        ).run
        for at, name in enumerate(("r-c", "r-a", "r-b"))
    ]
    assert sorted([*runs[1:], runs[0]], key=queue_order) == runs


@pytest.mark.requirement("lanes:no-deadlock")
def test_a_child_waits_in_another_pool_than_its_ancestor() -> None:
    parent = Life.begin(resolved=a_resolved(lane_slots=1)).run
    child = Life.begin(resolved=a_resolved(lane_slots=1), depth=2).run

    assert lane_key(parent) != lane_key(child)


@pytest.mark.requirement("spawn:session-needs-a-runtime-that-resumes")
@pytest.mark.parametrize(
    ("spec", "field"),
    [
        (RunSpec(task="x", thread=True), "thread"),
        (RunSpec(task="x", thread=True, mode=Mode.SESSION), "thread"),
        (RunSpec(task="x", mode=Mode.SESSION), "mode"),
    ],
)
def test_no_session_stays_open_where_the_runtime_cannot_continue_it(
    spec: RunSpec, field: str
) -> None:
    with pytest.raises(UsageError, match=f'^{field}: runtime "command" cannot') as refused:
        check_usable(spec, "command", Abilities())
    assert refused.value.details == {"field": field}
    assert "leave thread and mode out" in (refused.value.hint or "")
    check_usable(spec, "llm", Abilities(resume=True))
