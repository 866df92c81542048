"""Tools that fail in a row, and what the model's provider refuses."""

import pytest
from tests.domain.alerts.detectors.detector_inputs import (
    context,
    refused,
    see,
    shell,
    text,
    texts,
    used,
)

from subagents.domain.run.alert import AlertKind


@pytest.mark.requirement("detectors:api-error")
def test_an_api_error_says_what_was_refused_and_which_try_it_was() -> None:
    (alert,) = see(refused(retry="2/5"))[1]

    assert alert.text == "❌ API error: rate limited (retry 2/5)"
    assert alert.kind is AlertKind.API_ERROR
    assert alert.fields == {"message": "rate limited", "retry": "2/5"}
    assert alert.key == "api_error:1.1"


@pytest.mark.requirement("detectors:api-error")
def test_the_same_api_error_is_told_again_only_after_something_succeeded() -> None:
    retries = [refused(retry=f"{n}/5") for n in range(1, 6)]
    waits = [refused(f"overloaded, retry in {n} s (request req_{n}a8f3c2e)") for n in (1, 2, 4)]

    assert len(texts(*retries)) == 1
    assert len(texts(*waits)) == 1
    assert len(texts(refused(), text("still here"), refused())) == 1
    assert len(texts(refused(), used("Read"), refused())) == 2
    assert len(texts(refused(), context(10), refused())) == 2
    assert len(texts(refused("529 overloaded"), refused("401 unauthorized"))) == 2
    assert len(texts(refused("API error 529"), refused("API error 401"))) == 2


FAILED = shell("python x.py", "Traceback\nValueError: no", code=1)


@pytest.mark.requirement("detectors:failure-loop")
def test_three_failures_in_a_row_are_a_loop_told_once_until_something_succeeds() -> None:
    _, alerts = see(*[FAILED] * 7, used("Read"), *[FAILED] * 3)

    assert [each.text for each in alerts] == [
        "🔁 3 consecutive Bash failures — possibly stuck",
        "🔁 3 consecutive Bash failures — possibly stuck",
    ]
    assert alerts[0].fields == {
        "consecutiveFailures": 3,
        "lastTool": "Bash",
        "lastError": "exit code 1: ValueError: no",
    }
    assert [each.key for each in alerts] == ["failure_loop:1.3", "failure_loop:1.11"]


@pytest.mark.requirement("detectors:failure-loop")
def test_failures_of_several_tools_are_a_loop_too_and_an_answer_of_grep_is_none() -> None:
    edit = used("Edit", is_error=True, output="String to replace not found")
    nothing_found = shell("cd src && grep -rn missing .", code=1)

    assert texts(FAILED, edit, FAILED) == ["🔁 3 consecutive tool failures — possibly stuck"]
    assert texts(FAILED, nothing_found, nothing_found, FAILED) == []
    assert len(texts(FAILED, nothing_found, FAILED, FAILED)) == 1
    assert len(texts(*[shell("grep x nowhere", code=2)] * 3)) == 1
