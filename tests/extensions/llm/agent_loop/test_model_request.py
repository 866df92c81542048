"""What a provider's error means: come again later, try once more, or give up."""

import pytest
from pydantic_ai.exceptions import ModelHTTPError

from subagents.extensions.llm.agent_loop.model_request import (
    error_text,
    is_fault,
    is_limit,
    retry_after_s,
)


def http(status: int, body: object = None) -> ModelHTTPError:
    return ModelHTTPError(status, "scripted", body)


@pytest.mark.requirement("llm:faults")
@pytest.mark.parametrize(
    ("status", "means"),
    [(429, "limit"), (529, "limit"), (408, "fault"), (500, "fault"), (400, "neither")],
)
def test_a_status_tells_whether_waiting_or_trying_again_helps(status: int, means: str) -> None:
    error = http(status)
    found = "limit" if is_limit(error) else "fault" if is_fault(error) else "neither"

    assert found == means


@pytest.mark.requirement("llm:faults")
def test_a_network_that_is_away_may_come_back_and_a_bug_does_not() -> None:
    assert is_fault(OSError("no route"))
    assert is_fault(TimeoutError())
    assert not is_fault(ValueError("x"))


@pytest.mark.requirement("llm:faults")
@pytest.mark.parametrize(
    ("error", "text"),
    [
        (http(400, {"error": {"message": "no such model"}}), "400: no such model"),
        (http(400, {"message": "bad"}), "400: bad"),
        (TimeoutError(), "no answer in time"),
        (OSError("no route"), "no route"),
        (OSError(), "OSError"),
    ],
)
def test_an_error_is_shown_in_the_providers_own_words(error: BaseException, text: str) -> None:
    assert error_text(error) == text


@pytest.mark.requirement("llm:limits:date")
@pytest.mark.parametrize(("value", "seconds"), [(2.5, 2.5), (-1.0, None), (None, None)])
def test_a_time_to_come_again_counts_only_when_it_lies_ahead(
    value: float | None, seconds: float | None
) -> None:
    error = http(429)
    error.retry_after = value

    assert retry_after_s(error) == seconds
