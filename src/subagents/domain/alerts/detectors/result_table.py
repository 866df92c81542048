"""What tools print about their results: one row per form of line.

Every pattern is for one line, of which no more than ``LINE_CHARS_MAX`` are looked at, and repeats
nothing without a bound, so that no output takes long. A row is tried only where its hint occurs.

A row's own numbers are in groups named ``bad`` or ``bad2``; a row without them that means
``TALLY`` is counted by words: ``2 failed, 1 passed``, ``Failures: 1, Errors: 0``.
"""

import re
from enum import Enum, auto
from typing import Final, NamedTuple


class Means(Enum):
    """What a line that matches says."""

    TALLY = auto()
    """Counts: none bad = passed."""
    LAST_TALLY = auto()
    """Counts of everything so far: only the last such line."""
    SAME_TALLY = auto()
    """Counts that several lines may repeat: the highest."""
    GROUPS = auto()
    """Counts of files, suites or sessions, of interest where nothing finer is counted."""
    FAILED = auto()
    PASSED = auto()
    EACH = auto()
    """One error; passes are not told so."""
    LOOKS_FAILED = auto()
    """Believed where nothing clearer is said."""
    LOOKS_PASSED = auto()
    LOOSE_TALLY = auto()
    """Counts in a line of no known form."""


class Row(NamedTuple):
    means: Means
    hint: str
    pattern: re.Pattern[str]


def _row(means: Means, hint: str, pattern: str, flags: int = 0) -> Row:
    return Row(means, hint, re.compile(pattern, re.ASCII | re.MULTILINE | flags))


_N: Final = r"\d{1,7}"
_PATH: Final = r"[^\s:(][^\n:(]{0,250}"
_PYTEST_WORDS: Final = (
    r"(?:failed|passed|skipped|deselected|xfailed|xpassed|warnings?|errors?|rerun|subtests passed"
    r"|subtests failed)"
)

ROWS: Final = (
    # Python
    _row(
        Means.TALLY,
        " in ",
        rf"^(?:=+ )?(?:{_N} {_PYTEST_WORDS}(?:, )?){{1,9}} in \d{{1,7}}\.\d{{1,4}}s",
    ),
    _row(Means.FAILED, "no tests ran", r"^(?:=+ )?no tests ran(?: in|$)"),
    _row(Means.FAILED, "pytest: error:", r"^(?:__main__\.py|pytest|py\.test): error: "),
    _row(Means.FAILED, "fail-under", r"^Coverage failure: |^FAIL Required test coverage of "),
    _row(Means.FAILED, "Required test coverage", r"^FAIL Required test coverage of "),
    _row(Means.TALLY, "FAILED (", r"^FAILED \([a-z]{4,10}[a-z ]{0,20}=[^\n]{1,80}\)$"),
    _row(Means.PASSED, "\nRan ", r"^OK(?: \([^)\n]{1,100}\))?$"),
    _row(Means.PASSED, "All checks passed!", r"^All checks passed!$"),
    _row(
        Means.TALLY,
        "Found ",
        rf"^ {{0,2}}(?:\[ERROR\] )?Found (?:{_N} \w{{1,20}} \({_N} fixed, )?(?P<bad>{_N})"
        r" (?:errors?|problems?|diagnostics?|remaining)\b",
    ),
    _row(Means.TALLY, "would be reformatted", rf"^(?P<bad>{_N}) files? would be reformatted"),
    _row(Means.PASSED, "already formatted", rf"^{_N} files? already formatted$"),
    _row(Means.PASSED, "left unchanged", rf"^{_N} files? (?:would be )?left unchanged\.$"),
    _row(Means.TALLY, "fail to reformat", rf"^(?P<bad>{_N}) files? would fail to reformat"),
    _row(Means.PASSED, "Success: no issues", r"^Success: no issues found"),
    _row(Means.TALLY, " warning", rf"^(?P<bad>{_N}) errors?, {_N} warnings?"),
    _row(Means.LOOKS_PASSED, "has been rated at", r"^Your code has been rated at "),
    _row(Means.EACH, ": ", r"^[^\s:][^:\n]{0,250}:\d{1,7}:\d{1,6}: [A-Z]{1,5}\d{2,5}\b"),
    _row(Means.EACH, "Imports are incorrectly", r"^ERROR: [^\n]{1,300} Imports are incorrectly"),
    _row(Means.EACH, "Error compiling", r"^\*\*\* Error compiling "),
    _row(Means.FAILED, "evaluation failed :(", r"^ {1,4}evaluation failed :\("),
    _row(Means.PASSED, "congratulations :)", r"^ {1,4}congratulations :\)"),
    _row(Means.FAILED, "nox > Session", r"^nox > Session [^\n]{1,100} (?:failed|aborted)\.$"),
    _row(Means.PASSED, "nox > Session", r"^nox > Session [^\n]{1,100} was successful\.$"),
    _row(
        Means.PASSED, "\nSuccessfully built ", r"^Successfully built [^\n]{1,200}\.(?:whl|tar\.gz)"
    ),
    # One line per hook.
    _row(Means.FAILED, "...Failed", r"^[^\n.]{1,80}\.{3,80}+Failed$"),
    _row(Means.PASSED, "...Passed", r"^[^\n.]{1,80}\.{3,80}+Passed$"),
    # JavaScript
    _row(Means.EACH, "error TS", r"^(?:[\w@/.-]{1,80}: )?[^\n]{0,300}(?:: | - )error TS\d{1,6}: "),
    _row(Means.EACH, "error TS", r"^error TS\d{1,6}: "),
    _row(Means.TALLY, " fail ", rf"^(?:# |ℹ )fail (?P<bad>{_N})$"),
    _row(Means.TALLY, "Tests:", rf"^ {{0,4}}Tests: {{1,10}}{_N} [^\n]{{1,120}}"),
    _row(Means.GROUPS, "Test Suites:", rf"^Test Suites: {_N} [^\n]{{1,120}}"),
    _row(Means.TALLY, "Tests  ", rf"^ {{1,8}}Tests  {{1,6}}{_N} [^\n]{{1,120}}\(\d"),
    _row(Means.GROUPS, "Test Files  ", rf"^ {{1,8}}Test Files  {{1,6}}{_N} [^\n]{{1,120}}\(\d"),
    _row(Means.TALLY, "Errors  ", rf"^ {{1,8}}Errors  {{1,6}}(?P<bad>{_N}) errors?$"),
    _row(Means.FAILED, "No tests found, exiting", r"^No tests found, exiting with code 1$"),
    _row(Means.FAILED, "No test files found", r"^No test files found, exiting with code 1$"),
    _row(Means.TALLY, " failing", rf"^ {{2}}(?P<bad>{_N}) failing$"),
    _row(Means.PASSED, " passing (", rf"^ {{2}}{_N} passing \("),
    _row(Means.TALLY, " failed", rf"^ {{2}}(?P<bad>{_N}) (?:tests? )?failed$"),
    _row(Means.PASSED, " passed", rf"^ {{2}}{_N} (?:tests? passed$|passed \()"),
    _row(Means.TALLY, " fail\n", rf"^ (?P<bad>{_N}) fail$"),
    _row(Means.TALLY, " passed | ", rf"^(?:ok|FAILED) \| {_N} passed[^\n]{{1,120}}"),
    _row(
        Means.TALLY,
        " problem",
        rf"^✖ {_N} problems? \((?P<bad>{_N}) errors?, {_N} warnings?\)",
    ),
    _row(Means.PASSED, "use Prettier code style", r"^All matched files use Prettier code style!$"),
    _row(Means.FAILED, "Code style issues", r"^\[warn\] Code style issues (?:found )?in "),
    _row(Means.EACH, "[warn] ", r"^\[warn\] (?!Code style issues)[^\n]{1,250}\.\w{1,8}$"),
    _row(Means.EACH, "[error] ", r"^\[error\] [^\n]{1,250}\.\w{1,8}: "),
    _row(Means.LOOKS_PASSED, "Checked ", rf"^Checked {_N} files?\b"),
    _row(
        Means.TALLY,
        " compiled with ",
        rf"^webpack [\d.]{{1,20}} compiled with (?P<bad>{_N}) errors?",
    ),
    _row(
        Means.PASSED,
        " compiled ",
        rf"^webpack [\d.]{{1,20}} compiled (?:successfully|with {_N} warnings?)",
    ),
    _row(Means.PASSED, "built in", r"^✓ built in "),
    _row(Means.FAILED, "uild failed in", r"^(?:✗|x|error) Build failed in "),
    _row(Means.FAILED, "during build", r"^error during build:"),
    _row(Means.SAME_TALLY, "failed with", rf"^Build failed with (?P<bad>{_N}) errors?:"),
    _row(Means.EACH, "[ERROR]", r"^✘ \[ERROR\] "),
    _row(Means.PASSED, "Done in", r"^⚡ Done in "),
    _row(
        Means.FAILED,
        "npm ",
        r"^npm (?:ERR!|error) (?:Missing script|code ELIFECYCLE|Lifecycle script)",
    ),
    _row(Means.FAILED, "Lifecycle script", r"npm (?:ERR!|error) Lifecycle script "),
    _row(Means.FAILED, "Command failed", r"^(?:error| ELIFECYCLE ) Command failed with exit code"),
    _row(Means.FAILED, "Failed to compile", r"^(?:✖ )?Failed to compile\.$"),
    _row(Means.EACH, "Type error: ", r"^Type error: "),
    _row(Means.LOOKS_PASSED, "ompiled successfully", r"^(?: ✓ )?Compiled successfully"),
    _row(
        Means.LOOKS_PASSED,
        "bundle generation complete",
        r"^Application bundle generation complete\.",
    ),
    _row(Means.FAILED, "Failed:", r"^Failed: {1,8}[\w@/-]{1,80}#"),
    _row(Means.PASSED, "Successfully ran target", r"Successfully ran targets? "),
    _row(
        Means.FAILED,
        "Ran target",
        r"^ {1,4}NX {1,4}(?:Ran target|Running target)[^\n]{1,150}failed",
    ),
    # Rust
    _row(
        Means.SAME_TALLY,
        "due to ",
        rf"^error: (?:could not compile|aborting)[^\n]{{0,200}} due to (?P<bad>{_N}) previous",
    ),
    _row(Means.FAILED, "error: could not", r"^error: could not compile "),
    _row(Means.EACH, "error[E", r"^error\[E\d{4}\]: "),
    _row(
        Means.TALLY, "test result:", rf"^test result: (?:ok|FAILED)\. {_N} passed; [^\n]{{1,100}}"
    ),
    _row(Means.TALLY, "Summary [", r"^ {1,8}Summary \[[^\]\n]{1,20}\] [^\n]{1,120}"),
    _row(Means.FAILED, "error: test", r"^error: test (?:run )?failed"),
    _row(Means.LOOKS_PASSED, "Finished ", r"^ {1,8}Finished `?\w{1,40}`? "),
    _row(Means.EACH, "Diff in ", r"^Diff in [^\n]{1,300}:\d{1,7}:$"),
    # Go
    _row(Means.EACH, "--- FAIL: ", r"^--- FAIL: "),
    _row(Means.FAILED, "FAIL", r"^FAIL(?:\t|$)"),
    _row(Means.PASSED, "ok  \t", r"^ok  \t"),
    _row(Means.LOOKS_PASSED, "PASS", r"^PASS$"),
    _row(Means.LOOKS_PASSED, "[no test files]", r"^\?   \t[^\n]{1,200}\[no test files\]"),
    _row(Means.EACH, ".go:", r"^(?:vet: )?[\w./-]{1,200}\.go:\d{1,7}:\d{1,5}: "),
    _row(Means.TALLY, " issues", rf"^(?P<bad>{_N}) issues[.:]$"),
    # C, C++, Java and whoever prints like them
    _row(
        Means.EACH,
        "error",
        rf"^(?:[:\w]{{1,60}}(?=/))?{_PATH}:\d{{1,7}}(?::\d{{1,6}})?: (?:fatal )?error\b:? ",
    ),
    _row(Means.EACH, "error", r"^[^\n(]{1,250}\(\d{1,7}(?:,\d{1,6}){0,3}\): error [A-Z]{1,5}\d"),
    _row(Means.EACH, " - error: ", r"^ {0,4}[^\s:][^\n:]{0,250}:\d{1,7}:\d{1,6} - error: "),
    _row(Means.EACH, ": fatal error: ", r"^[\w.+-]{1,60}: fatal error: "),
    _row(Means.EACH, "undefined reference", r": undefined reference to "),
    _row(Means.FAILED, "ld returned", r"ld returned \d{1,3} exit status"),
    _row(Means.SAME_TALLY, " error", rf"^(?:\[INFO\] )?(?P<bad>{_N}) errors?(?: generated\.?)?$"),
    _row(
        Means.FAILED,
        "*** ",
        r"^[\w./-]{0,40}make(?:\[\d{1,3}\])?: \*\*\* (?!\[[^\n]{1,200}\] Terminated)",
    ),
    _row(Means.FAILED, ": *** ", r"^[\w./-]{1,200}:\d{1,6}: \*\*\* "),
    _row(Means.FAILED, "Terminated", r"^[\w./-]{0,40}make(?:\[\d{1,3}\])?: \*\*\* "),
    _row(Means.PASSED, "to be done for", r"^g?make(?:\[\d{1,3}\])?: Nothing to be done for "),
    _row(Means.PASSED, "is up to date", r"^g?make(?:\[\d{1,3}\])?: [^\n]{1,200} is up to date\.$"),
    _row(Means.EACH, "CMake Error", r"^CMake Error(?: at|:)"),
    _row(Means.FAILED, "Configuring incomplete", r"^-- Configuring incomplete, errors occurred!"),
    _row(Means.LOOKS_PASSED, "Built target", r"^\[100%\] Built target "),
    _row(Means.FAILED, "ninja: ", r"^ninja: (?:build stopped|error|fatal)"),
    _row(Means.PASSED, "no work to do", r"^ninja: no work to do\.$"),
    _row(Means.LOOKS_PASSED, "] ", r"^\[(\d{1,6})/\1\] "),
    _row(
        Means.TALLY,
        "tests passed, ",
        rf"^\d{{1,3}}% tests passed, (?P<bad>{_N}) tests failed out of {_N}",
    ),
    _row(Means.PASSED, "BUILD SUCCESS", r"^(?:\[INFO\] )?BUILD SUCCESS(?:FUL)?\b"),
    _row(Means.FAILED, "BUILD FAIL", r"^(?:\[INFO\] )?BUILD FAIL(?:URE|ED)\b"),
    _row(Means.LAST_TALLY, "Tests run:", r"^(?:\[\w{4,7}\] )?Tests run: [^\n]{1,160}"),
    _row(Means.TALLY, "tests completed", rf"^{_N} tests? completed, (?P<bad>{_N}) failed"),
    _row(Means.LOOKS_FAILED, "[ERROR] ", r"^\[ERROR\] "),
    _row(Means.PASSED, "[success]", r"^\[success\] "),
    _row(Means.FAILED, "[error]", r"^\[error\] (?:\([^)\n]{1,80}\) |Total time)"),
    # Ruby, PHP
    _row(Means.TALLY, " examples, ", rf"^{_N} examples, [^\n]{{1,100}}"),
    _row(Means.TALLY, " example, ", rf"^{_N} example, [^\n]{{1,100}}"),
    _row(Means.TALLY, " assertions, ", rf"^{_N} (?:runs|tests), {_N} assertions, [^\n]{{1,100}}"),
    _row(Means.TALLY, "inspected, ", rf"^{_N} files? inspected, (?P<bad>{_N}|no) offenses?"),
    _row(Means.PASSED, "OK (", rf"^OK \({_N} tests?, "),
    _row(Means.PASSED, "OK, but", r"^OK, but "),
    _row(Means.FAILED, "S!\n", r"^(?:FAILURES|ERRORS)!$"),
    _row(Means.TALLY, "Assertions: ", rf"^Tests: {_N}, Assertions: [^\n]{{1,120}}"),
    _row(Means.PASSED, "No syntax errors", r"^No syntax errors detected"),
    _row(Means.EACH, "Errors parsing", r"^Errors parsing "),
    _row(Means.PASSED, "[OK] ", r"^ {0,2}\[OK\] No errors"),
    # .NET, Swift, Bazel, Elixir, Dart and others
    _row(Means.PASSED, "Build succeeded.", r"^ {0,2}Build succeeded\."),
    _row(Means.FAILED, "Build FAILED.", r"^ {0,2}Build FAILED\."),
    _row(Means.SAME_TALLY, "Error(s)", rf"^ {{1,8}}(?P<bad>{_N}) Error\(s\)$"),
    _row(
        Means.TALLY,
        "ed!  - ",
        rf"^ {{0,2}}(?:Passed|Failed)! {{1,4}}- Failed: {{1,8}}(?P<bad>{_N}),",
    ),
    _row(Means.PASSED, "Build complete!", r"^Build complete!"),
    _row(Means.FAILED, "** ", r"^\*\* (?:BUILD|TEST|ARCHIVE) FAILED \*\*"),
    _row(Means.PASSED, "** ", r"^\*\* (?:BUILD|TEST|ARCHIVE) SUCCEEDED \*\*"),
    _row(
        Means.LAST_TALLY,
        "Executed ",
        rf"^\s{{0,8}}Executed {_N} tests?, with (?P<bad>{_N}) failure",
    ),
    _row(Means.PASSED, "Build completed", r"Build completed successfully"),
    _row(Means.FAILED, "NOT complete", r"Build did NOT complete successfully"),
    _row(Means.TALLY, "FAILED, ", rf"Build completed, (?P<bad>{_N}) tests? FAILED"),
    _row(Means.TALLY, " failure", rf"^(?:{_N} doctests?, )?{_N} tests?, (?P<bad>{_N}) failures?"),
    _row(Means.PASSED, "All tests passed", r"(?:^|: |\] )All tests passed[!.]"),
    _row(Means.FAILED, "Some tests failed", r"(?:^|: )Some tests failed\."),
    _row(Means.TALLY, " found.", rf"^(?P<bad>{_N}) issues? found\."),
    _row(Means.PASSED, "No issues found!", r"^No issues found!"),
    _row(Means.PASSED, "All specs passed!", r"All specs passed!"),
    _row(Means.TALLY, " failed (", rf"✖ {{1,4}}(?P<bad>{_N}) of {_N} failed \("),
    _row(Means.FAILED, "Result: FAIL", r"^Result: FAIL$"),
    _row(Means.PASSED, "Result: PASS", r"^Result: PASS$"),
    _row(Means.EACH, "line ", r"^In [^\n]{1,250} line \d{1,7}:$"),
    _row(Means.PASSED, "configuration is valid", r"^Success! The configuration is valid"),
    _row(Means.FAILED, "ERROR: failed to", r"^ERROR: failed to (?:solve|build)\b"),
    _row(Means.FAILED, "error: Recipe", r"^error: Recipe `"),
    _row(Means.FAILED, "scenario", rf"^{_N} scenarios? passed, [1-9]\d{{0,6}} failed"),
    # Whatever went wrong
    _row(Means.LOOKS_FAILED, "Traceback (most", r"^Traceback \(most recent call last\):"),
    _row(Means.LOOKS_FAILED, "Error", r"^(?:\w{1,60}\.){0,6}\w{0,60}(?:Error|Exception)(?::|$)"),
    _row(Means.LOOKS_FAILED, "error: ", r"^(?:error|ERROR): "),
    _row(Means.LOOKS_FAILED, "fatal: ", r"^(?:fatal|FATAL): "),
    _row(Means.LOOKS_FAILED, "panic", r"^panic: |^thread '[^\n]{1,100}' panicked at "),
    _row(Means.LOOKS_FAILED, "not found", r"^[^\n]{1,200}: (?:command )?not found$"),
    _row(Means.LOOKS_FAILED, "No module named", r": No module named \S{1,80}$"),
    _row(Means.LOOKS_FAILED, "syntax error", r"^[^\n]{1,200}: line \d{1,7}: syntax error"),
    _row(Means.LOOKS_FAILED, "fault", r"^Segmentation fault"),
    _row(Means.LOOKS_FAILED, "rror", r"^PHP (?:Parse|Fatal) error: "),
    # Words that anybody uses
    _row(
        Means.LOOSE_TALLY,
        "",
        rf"^[^\n]{{0,200}}?(?<![\w.]){_N} (?:\w{{1,12}} )?"
        r"(?:passed|failed|failing|passing|failures?|errors?)\b[^\n]{0,100}",
        re.IGNORECASE,
    ),
    _row(
        Means.LOOKS_PASSED,
        "",
        r"\bno (?:errors|issues|problems|warnings)\b"
        r"|\b(?:tests?|checks?|build) (?:passed|succeeded)\b"
        r"|\bbuild successful\b|\bsuccessfully (?:built|compiled)\b|\bcompiled successfully\b",
        re.IGNORECASE,
    ),
    _row(Means.LOOKS_FAILED, "", r"\b(?:tests?|checks?|build|compilation) failed\b", re.IGNORECASE),
)

PLACES: Final = tuple(
    re.compile(pattern, re.ASCII | re.MULTILINE)
    for pattern in (
        r"^FAILED ([^\s:]{1,250})::",
        r"^ERROR ([^\s:]{1,250}\.py)\b",
        r"^\[ERROR\] ([^\s:]{1,250}):\[\d",
        r"^(?:vet: )?([\w./-]{1,200}\.go):\d{1,7}:\d{1,5}: ",
        (
            r"^(?:ERROR: |[:\w]{1,60}(?=/)|[\w@/-]{1,80}: | {0,4})([^\s:([][^\n:(]{0,250}\.\w{1,8})"
            r"(?::\d{1,7}){1,2}(?:: | - )(?:(?:fatal )?error\b|[A-Z]{1,5}\d{2,5}\b)"
        ),
        (
            r"^(?:[\w@-]{1,40}:[\w@-]{1,40}: )?([^\s:([][^\n:(]{0,250}\.\w{1,8})"
            r"\(\d{1,7}(?:,\d{1,6}){0,3}\): error\b"
        ),
        r"^ {1,6}--> ([^\s:]{1,250}):\d",
        r"^ ?FAIL  ?(?:\./)?(\S{1,250}\.\w{2,4})\b",
        r"^would reformat (\S{1,250})$",
        r"^ERROR: (\S{1,250}) Imports are",
    )
)
"""Where the errors are; the first of these that finds something counts."""
