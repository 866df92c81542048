"""What the webhook courier sends, and what it makes of the answers."""

import asyncio
import gzip
import hashlib
import hmac
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.couriers.courier_places import OUTSIDE
from tests.extensions.notifications.webhook_place import Answering, Posted, WebhookPlace

from subagents.domain.rules.delivery_policy import (
    GiveUp,
    TryAgain,
    next_step,
    record_try,
)
from subagents.domain.run.outcome import (
    Delivered,
    DeliveryFailed,
    DeliveryOutcome,
    DeliveryPath,
)
from subagents.domain.run.run import Delivery, DeliveryTry, Run
from subagents.domain.run.values import RunId, replace
from subagents.extensions.notifications.webhook_courier import (
    RETRY_AFTER_MS_MAX,
    SIGNATURE,
    TIMESTAMP,
    retry_after_ms,
)
from subagents.extensions.notifications.webhook_request import ANSWER_BYTES_MAX
from subagents.extensions.testing.conformance import Behaviour, CourierPlace
from subagents.extensions.testing.courier_suite import SUITE, announced, settled_run
from subagents.text import iso

each_with_its_requirement = [
    pytest.param(each, id=each.name, marks=pytest.mark.requirement(each.requirement))
    for each in SUITE.behaviours
]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[WebhookPlace]:
    with WebhookPlace(tmp_path, secret_env="HOOK_SECRET") as found:
        found.environ["HOOK_SECRET"] = "s3cret"
        yield found


def posted(place: WebhookPlace, run: Run | None = None, text: str = "done") -> DeliveryOutcome:
    async def once() -> DeliveryOutcome:
        courier = await place.courier()
        found = run or settled_run(requester=OUTSIDE)
        async with asyncio.timeout(10):
            return await courier.deliver(found, announced(found, text), None)

    return asyncio.run(once())


@pytest.mark.parametrize("behaviour", each_with_its_requirement)
def test_a_webhook_keeps_this_promise(behaviour: Behaviour[CourierPlace], tmp_path: Path) -> None:
    with WebhookPlace(tmp_path) as place:
        behaviour.check(place)


@pytest.mark.requirement("couriers:webhook:document")
def test_the_document_names_the_run_its_outcome_and_its_thread(place: WebhookPlace) -> None:
    run = settled_run(requester=OUTSIDE)
    bound = replace(run, spec=replace(run.spec, thread=True))

    assert posted(place, bound, "it is done") == Delivered(path=DeliveryPath.DIRECT)
    posted(place, run)

    first, second = place.until(2)
    assert first.path == "/hook?to=me"
    assert first.document == {
        "text": "it is done",
        "sessionKey": OUTSIDE,
        "runId": run.id,
        "label": run.resolved.label,
        "agentId": run.resolved.agent_id,
        "threadId": run.id,
        "messageId": f"{run.id}:announce",
        "continues": None,
        "outcome": {"status": "ok", "reason": None, "error": None},
        "endedAt": iso(run.ended_at_ms or 0),
    }
    assert second.document["threadId"] is None


@pytest.mark.requirement("couriers:webhook:signed")
def test_a_receiver_can_prove_who_sent_it_and_when(place: WebhookPlace) -> None:
    posted(place)

    (found,) = place.until(1)
    text = f"{found.headers[TIMESTAMP]}.".encode() + found.body
    expected = hmac.new(b"s3cret", text, hashlib.sha256).hexdigest()
    assert found.headers[SIGNATURE] == f"sha256={expected}"
    assert found.headers["Idempotency-Key"] == f"{settled_run(requester=OUTSIDE).id}:announce"


@pytest.mark.requirement("couriers:webhook:signed")
def test_without_its_secret_nothing_is_sent_unsigned(place: WebhookPlace) -> None:
    place.environ.clear()

    outcome = posted(place)

    assert isinstance(outcome, DeliveryFailed)
    assert outcome.retryable
    assert "the daemon has no variable HOOK_SECRET" in outcome.error
    assert place.posted == []


@pytest.mark.requirement("couriers:webhook:answers")
@pytest.mark.parametrize(
    ("status", "is_retryable"),
    [
        *((400, False), (401, False), (404, False), (410, False), (302, False)),
        *((408, True), (409, True), (425, True), (429, True), (500, True), (503, True)),
    ],
)
def test_each_refusal_is_for_now_or_for_good(
    place: WebhookPlace, status: int, *, is_retryable: bool
) -> None:
    place.answers = lambda _: Answering(status, {"Location": place.url}, b"no\nroom")

    outcome = posted(place)

    origin = place.url.removesuffix("/hook?to=me")
    assert outcome == DeliveryFailed(
        retryable=is_retryable, error=f"{origin} answered {status}: no room"
    )


@pytest.mark.requirement("couriers:webhook:answers")
def test_an_answer_is_read_as_far_as_it_is_told_and_never_decompressed(place: WebhookPlace) -> None:
    bomb = gzip.compress(b"A" * 50_000_000)
    heard: list[Posted] = []

    def answer(request: Posted) -> Answering:
        heard.append(request)
        return Answering(500, {"Content-Encoding": "gzip"}, bomb)

    place.answers = answer
    outcome = posted(place)

    assert isinstance(outcome, DeliveryFailed)
    assert "AAAA" not in outcome.error
    assert len(outcome.error) < ANSWER_BYTES_MAX + 100
    assert heard[0].headers["Accept-Encoding"] == "identity"


@pytest.mark.requirement("couriers:webhook:answers")
def test_what_a_receiver_says_is_one_line_that_moves_no_cursor(place: WebhookPlace) -> None:
    said = "no\x1b[2J\r\nroom\x9b1A \N{RIGHT-TO-LEFT OVERRIDE}here"
    place.answers = lambda _: Answering(500, {}, said.encode())

    outcome = posted(place)

    assert isinstance(outcome, DeliveryFailed)
    assert outcome.error.isprintable()
    assert outcome.error.endswith("answered 500: no room1A here")


@pytest.mark.requirement("couriers:webhook:retry-after")
def test_the_next_try_is_not_before_the_receiver_said(place: WebhookPlace) -> None:
    place.answers = lambda _: Answering(429, {"Retry-After": "120"})

    outcome = posted(place)

    assert isinstance(outcome, DeliveryFailed)
    assert outcome.retry_after_ms == 120_000
    tried = DeliveryTry(
        at_ms=1_000,
        target=OUTSIDE,
        requester_depth=0,
        nested=False,
        route_mode="bound",
        phases=("direct-primary",),
        outcome=outcome,
        idempotency_key="k",
    )
    delivery = record_try(Delivery(target=OUTSIDE), tried)
    assert next_step(RunId("r-1"), delivery) == TryAgain(due_ms=121_000)
    for_good = replace(outcome, retryable=False)
    refused = record_try(Delivery(target=OUTSIDE), replace(tried, outcome=for_good))
    assert next_step(RunId("r-1"), refused) == GiveUp()


@pytest.mark.requirement("couriers:webhook:retry-after")
@pytest.mark.parametrize(
    ("text", "found"),
    [
        (None, None),
        ("7", 7_000),
        ("0", 0),
        ("99999999999", RETRY_AFTER_MS_MAX),
        ("Thu, 01 Jan 1970 00:01:30 GMT", 80_000),
        ("Thu, 01 Jan 1970 00:00:01 GMT", 0),
        ("soon", None),
        ("-5", None),
        ("", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(text: str | None, found: int | None) -> None:
    assert retry_after_ms(text, now_s=10.0) == found


@pytest.mark.requirement("couriers:webhook:answers")
def test_a_receiver_that_is_not_there_is_tried_again(place: WebhookPlace) -> None:
    place.close()

    outcome = posted(place)

    assert isinstance(outcome, DeliveryFailed)
    assert outcome.retryable
    assert outcome.error.startswith("http://127.0.0.1:")
    assert "to=me" not in outcome.error
