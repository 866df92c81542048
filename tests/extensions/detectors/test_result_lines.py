"""What the lines that tools end with say."""

import pytest

from subagents.extensions.detectors.result_lines import Kept, Summary, summary_of
from subagents.text import cut_middle


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


@pytest.mark.requirement("detectors:recorded")
@pytest.mark.parametrize(
    ("output", "passed", "errors"),
    [
        # TAP, of all ages.
        ("1..2\nok\nok - b", True, 0),
        ("ok 1 - a\nok 2 # SKIP no printer\n1..2", True, 0),
        (("TAP version 14\n1..2\nok 1\nnot ok 2 - b #" " TODO later"), True, 0),
        (("TAP version 14\n    # Subtest: deep\n    not ok 1 - c #" " TODO\n1..1\nok 1"), True, 0),
        ("not ok - a", False, 1),
        ("not ok 1 - a\nnot ok 2 - b\nok 3", False, 2),
        ("1..2\nok 1\nBail out!  no disk", False, None),
        ("1..3\nok 1\nok 2", None, None),
        ("1..0 # SKIP no printer", None, None),
        ("ok 1 - a", None, None),
        ("# tests 2\n# pass  1\n# fail  1", False, 1),
        # Cucumber of JavaScript, Java, Ruby and Go.
        ("3 scenarios (1 skipped, 2 passed)\n3 steps (1 skipped, 2 passed)", True, 0),
        ("3 Scenarios (2 failed, 1 passed)\n9 Steps (2 failed, 7 passed)", False, 2),
        ("1 scenario (1 undefined)\n1 step (1 undefined)", False, None),
        ("1 scenario (1 pending)\n2 steps (1 pending, 1 passed)", None, None),
        ("1 feature passed, 0 failed, 0 skipped\n1 scenario passed, 0 failed", True, 0),
        # Meson before and after 1.6, which leaves out what is 0.
        ("Ok:                 2   \nExpected Fail:      0   \nFail:               0   ", True, 0),
        ("Ok:                 2   \nFail:               1   \nTimeout:            2   ", False, 3),
        ("Ok:      3\nSkipped: 1", True, 0),
        ("Ok:   3\nFail: 1", False, 1),
        ("Fail: 0\nTimeout: 0", None, None),
        # lit of now and of LLVM 11.
        ("Total Discovered Tests: 3\n  Unsupported: 1 (33%)\n  Passed     : 2 (66%)", True, 0),
        ("Failed Tests (2):\n  p :: a\n\n  Passed: 1 (33%)\n  Failed: 2 (66%)", False, 2),
        ("  Expected Passes    : 5", True, 0),
        ("  Expected Passes    : 5\n  Unexpected Failures: 1", False, 1),
        # Bazel and .NET.
        ("Executed 1 out of 2 tests: 2 tests pass.", True, 0),
        ("Executed 2 out of 2 tests: 1 test passes and 1 fails locally.", False, 1),
        ("INFO: Build completed, 1 test FAILED\nExecuted 2 out of 2 tests: 1 fails", False, 1),
        ("//app:io_test    TIMEOUT in 60.1s", False, None),
        ("//app:io_test    PASSED in 0.1s", None, None),
        ("Test summary: total: 2, failed: 0, succeeded: 2, skipped: 0, duration: 1s", True, 0),
        ("Test summary: total: 2, failed: 1,\nBuild failed with 1 error(s) in 3.2s", False, 1),
        ("Build succeeded with 1 warning(s) in 2.0s", None, None),  # it says nothing of tests
        ("Test run summary: Passed! - bin/Cart.dll (net9.0|x64)\n  total: 2", True, 0),
        ("Test run summary: Zero tests ran", False, None),
        ("Test Run Failed.\nTotal tests: 2\n     Passed: 1\n     Failed: 1", False, 1),
        ("Test Run Successful.\nTotal tests: 2\n     Passed: 2", True, 0),
        # Frameworks of C++.
        ("[  PASSED  ] 2 tests.", True, 0),
        ("[  PASSED  ] 0 tests.", None, None),
        ("[  PASSED  ] 1 test.\n[  FAILED  ] 1 test, listed below:\n 1 FAILED TEST", False, 1),
        ("All tests passed (4 assertions in 1 test case)", True, 0),
        ("test cases: 3 | 1 passed | 2 failed\nassertions: 6 | 4 passed | 2 failed", False, 2),
        ("[doctest] test cases: 2 | 1 passed | 1 failed\n[doctest] Status: FAILURE!", False, 1),
        ("[doctest] test cases: 2 | 2 passed | 0 failed\n[doctest] Status: SUCCESS!", True, 0),
    ],
)  # fmt: skip
def test_the_last_lines_of_many_tools_are_read(
    *, output: str, passed: bool | None, errors: int | None
) -> None:
    summary = summary_of(output, is_test=True, kept=Kept.END)

    assert (summary.passed, summary.errors) == (passed, errors)


@pytest.mark.requirement("detectors:silence")
@pytest.mark.parametrize(
    "cut",
    [
        "... [3000 characters truncated] ...",
        "[... omitted 256 of 300 lines ...]",
        "…1200 tokens truncated…",
        "<response clipped: 40 lines omitted>",
        "[Output truncated]",
        cut_middle("x" * 33_000, 32_000),
        "x" * 33_000,
    ],
)
def test_weak_words_are_no_success_of_an_output_whose_middle_is_missing(cut: str) -> None:
    weak, sure = "no problems\n{}\nchecks passed", "{}\n=== 3 passed in 0.1s ==="

    assert summary_of(weak.format("and more"), is_test=False).passed is True
    assert summary_of(weak.format(cut), is_test=False).passed is None
    assert summary_of(sure.format(cut), is_test=True).passed is True
