"""What went wrong with a turn of an ACP agent, wherever it says so."""

from pathlib import Path
from typing import Any

import pytest
from tests.extensions.acp.acp_folds import (
    AcpFold,
    answer,
    chunk,
    failure,
    opening,
)
from tests.extensions.acp.acp_lines import RECORDINGS, played


@pytest.mark.requirement("acp:interrupt")
@pytest.mark.parametrize(
    "recording",
    [each for each in RECORDINGS if ".cancelled." in each.name],
    ids=lambda path: path.stem,
)
def test_a_cancelled_turn_is_an_error_that_says_so(recording: Path) -> None:
    fold = played(recording)

    assert (fold.result.is_error, fold.result.error) == (True, "the turn was interrupted")


@pytest.mark.requirement("acp:limits")
@pytest.mark.parametrize(
    "recording",
    [each for each in RECORDINGS if ".limit." in each.name],
    ids=lambda path: path.stem,
)
def test_a_provider_that_takes_no_more_is_a_limit_also_where_the_turn_ends_well(
    recording: Path,
) -> None:
    fold = played(recording)

    assert (fold.result.is_error, fold.result.is_limit) == (True, True), fold.result
    assert any(each.api_error is not None for each in fold.output)


@pytest.mark.requirement("acp:failures")
@pytest.mark.parametrize(
    "recording",
    [each for each in RECORDINGS if ".failed." in each.name],
    ids=lambda path: path.stem,
)
def test_a_failed_request_is_an_error_in_the_providers_words(recording: Path) -> None:
    fold = played(recording)

    assert fold.result.is_error
    assert "scripted error 400" in (fold.result.error or "")
    assert not fold.result.is_limit
    assert "{" not in (fold.result.error or "")


@pytest.mark.requirement("acp:ends")
@pytest.mark.parametrize(
    ("reason", "error"),
    [
        ("max_tokens", "token limit"),
        ("max_turn_requests", "limit of model requests"),
        ("refusal", "refused"),
        ("cancelled", "interrupted"),
        ("something_new", "the turn ended with something_new"),
    ],
)
def test_a_turn_that_stops_for_another_reason_is_an_error_with_what_was_said(
    reason: str, error: str
) -> None:
    fold = AcpFold(opening())
    fold.open()
    fold.hear(chunk("so far"), answer("prompt", {"stopReason": reason}))

    assert fold.is_done
    assert error in (fold.result.error or "")
    assert fold.result.text == "so far"


@pytest.mark.requirement("acp:limits")
@pytest.mark.parametrize(
    ("data", "after_ms"),
    [
        ({"status": 429, "retryAfter": 12}, 12_000),
        ({"error": {"code": 429}, "retry_after_ms": 1500}, 1_500),
        ({"details": "Error: HTTP 529 overloaded"}, None),
    ],
)
def test_a_limit_is_found_where_agents_put_it(data: dict[str, Any], after_ms: int | None) -> None:
    fold = AcpFold(opening())
    fold.open()
    fold.hear(failure("prompt", -32603, "Internal error", data))

    assert (fold.result.is_limit, fold.result.retry_after_ms) == (True, after_ms)
