"""What the lines that tools end with say."""

import pytest

from subagents.domain.alerts.detectors.commands.result_lines import Summary, summary_of


@pytest.mark.requirement("detectors:recorded")
@pytest.mark.parametrize(
    ("output", "summary"),
    [
        ("", Summary()),
        ("some words", Summary()),
        ("=== 2 failed, 1 passed in 0.1s ===", Summary(
            passed=False, errors=2, line="=== 2 failed, 1 passed in 0.1s ===")),
        ("=== 41 passed in 0.1s ===", Summary(passed=True, errors=0, tests=41)),
        ("Test Suites: 1 failed, 1 total\nTests:       3 failed, 38 passed, 41 total", Summary(
            passed=False, errors=3, line="Tests:       3 failed, 38 passed, 41 total")),
        ("a.c:1:2: error: x\nb/a.c:3:4: error: y\n2 errors generated.", Summary(
            passed=False, errors=2, places=("a.c",), line="a.c:1:2: error: x")),
        ("Tests run: 3, Failures: 1, Errors: 0\nTests run: 5, Failures: 2, Errors: 1", Summary(
            passed=False, errors=3, line="Tests run: 3, Failures: 1, Errors: 0")),
        ("Ran 2 tests in 0.1s\n\nOK", Summary(passed=True, errors=0)),
        ("OK", Summary()),
        ("FAILED a/b.py::c - d\nx failed", Summary()),
        ("Traceback (most recent call last):\n  x\nValueError: y", Summary(
            passed=False, line="ValueError: y")),
        ("no errors found", Summary(passed=True, errors=0)),
    ],
)  # fmt: skip
def test_an_output_says_whether_it_passed_what_failed_and_where(
    output: str, summary: Summary
) -> None:
    assert summary_of(output, is_test=False) == summary


@pytest.mark.requirement("detectors:traps")
def test_an_error_that_a_test_wanted_is_none_when_the_tests_passed() -> None:
    output = "a.c:1:2: error: wanted\n=== 1 passed in 0.1s ==="

    assert summary_of(output, is_test=True).passed is True
    assert summary_of(output, is_test=False).passed is False
