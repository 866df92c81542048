"""Requests under one idempotency key are compared parameter by parameter."""

import pytest

from subagents.domain.rules.idempotency import differing, digest_of
from subagents.domain.run.spec import Artifact, Budget, Contract, RunSpec

ASKED = RunSpec(task="count", label="one", idempotency_key="k")


@pytest.mark.requirement("spawn:idempotency-conflict")
@pytest.mark.parametrize(
    ("other", "differs"),
    [
        (RunSpec(task="count", label="one"), ()),
        (RunSpec(task="count", label="one", retry_count=0, cwd="/work"), ()),
        (RunSpec(task="count!", label="one"), ("task",)),
        (RunSpec(task="count", tags=("a",)), ("label", "tags")),
        (RunSpec(task="count", label="one", cwd="/"), ("cwd",)),
    ],
)
def test_two_requests_differ_in_what_was_given_and_nothing_else(
    other: RunSpec, differs: tuple[str, ...]
) -> None:
    known = digest_of(ASKED, cwd="/work")

    assert differing(known, digest_of(other, cwd="/work")) == differs


@pytest.mark.requirement("spawn:idempotency-conflict")
def test_where_it_was_asked_for_and_the_budget_of_its_plan_are_part_of_a_request() -> None:
    known = digest_of(ASKED, cwd="/work")
    going_on = RunSpec(task="more", continues="one")

    assert differing(known, digest_of(ASKED, cwd="/elsewhere")) == ("cwd",)
    capped = digest_of(ASKED, cwd="/work", plan=Budget(max_tokens=5))
    assert differing(known, capped) == ("budget of the plan",)
    assert digest_of(going_on, cwd="/work") == digest_of(going_on, cwd="/elsewhere")


@pytest.mark.requirement("spawn:idempotency-conflict")
def test_the_order_of_keys_in_a_schema_is_no_difference() -> None:
    def asked(**schema: object) -> str:
        contract = Contract(artifacts=(Artifact(path="a.json", schema=schema),))
        return digest_of(RunSpec(task="x", verification=contract))

    assert asked(type="array", minItems=1) == asked(minItems=1, type="array")
    known, other = asked(type="array"), asked(type="object")
    assert differing(known, other) == ("verification",)


@pytest.mark.requirement("spawn:idempotency-conflict")
def test_a_digest_holds_nothing_of_what_was_asked() -> None:
    assert "count" not in digest_of(ASKED, cwd="/work")
    assert differing(None, digest_of(ASKED)) == ()
