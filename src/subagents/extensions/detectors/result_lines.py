"""What an output says of the result of a build or test, by the lines that tools end with.

Lines of a known form decide; words that anybody may print count only where there is none of them.
A failure that is reported outweighs a success: of several programs one has failed. Where not all of
the output is there, a success is believed only of a line that no failure elsewhere can make false.
"""

import re
from enum import IntEnum
from itertools import islice
from typing import Final, NamedTuple

from subagents.domain.run.worker_output import OUTPUT_CHARS_MAX

LINE_CHARS_MAX: Final = 500
MATCHES_MAX: Final = 500
"""The most lines of one meaning that are counted; so many errors are enough."""
PLACES_MAX: Final = 20

_TABLE: Final = r"""
WHOLE COUNTS: none bad = passed; one line for everything
    (?:=+ )?(?:<n> (?:<pytest>)(?:, )?){1,9} in \d{1,7}\.\d{1,4}s
    FAILED \([a-z]{4,10}[a-z ]{0,20}=.+\)$
    (?:ok|FAILED) \| <n> passed.+
    .*✖ {1,4}<bad> of <n> failed \(
    [ ]{1,8}Summary \[[^\]\n]+\] .+
    \d{1,3}% tests passed, <bad> tests failed out of <n>
    <n> tests? completed, <bad> failed
    <n> examples?, .+
    <n> (?:runs|tests), <n> assertions, .+
    Tests: <n>, Assertions: .+
    <n> [Ss]cenarios? passed, .+
COUNTS: none bad = passed, where the end of the output is there
    [ ]{0,2}(?:\[ERROR\] )?Found (?:<n> \w+ \(<n> fixed, )?<bad> (?:error|problem|diagnostic|remain)
    <bad> files? would (?:be reformatted|fail to reformat)
    <bad> errors?, <n> warnings?
    <bad> issues(?:[.:]$| found\.)|<bad> issue found\.
    (?:# |ℹ )fail {1,4}<bad>$
    [ ]{1,8}Errors {2,8}<bad> errors?$
    [ ]{1,2}<bad> (?:failing|(?:tests? )?failed|fail)$
    ✖ <n> problems? \(<bad> errors?, <n> warnings?\)
    webpack [\d.]+ compiled with <bad> errors?
    test result: (?:ok|FAILED)\. <n> passed; .+
    <n> files? inspected, <bad> offenses?
    (?:<n> doctests?, )?<n> tests?, <bad> failures?
LAST COUNTS: of everything so far, only the last such line
    (?:\[\w{4,7}\] )?Tests run: .+
    [ \t]{0,8}Executed <n> tests?, with <bad> failure
SAME COUNTS: several lines may repeat them
    Build failed with <bad> errors?:
    [ ]{0,2}Build failed with <bad> error\(s\)
    [ ]{0,2}Test summary: total: <n>, failed: <bad>,
    error: (?:could not compile|aborting).* due to <bad> previous
    (?:\[INFO\] )?<bad> errors?(?: generated\.?)?$
    [ ]{1,8}<bad> Error\(s\)$
    .*Build completed, <bad> tests? FAILED
    Executed <n> out of <n> tests?: .{0,80}?<bad> fails?\b
    <n> tests?, <n> passed, <bad> failed
SUITE COUNTS: the same, next to those of files or suites, which may fail without one test
    [ ]{0,4}Tests: {1,10}<n> .+
    [ ]{1,8}Tests {2,8}<n> .+\(\d
PART COUNTS: of one project of several; none bad = passed, where the whole output is there
    [ ]{0,2}(?:Passed|Failed)! {1,4}- Failed: {1,8}<bad>,
BAD COUNTS: none bad says nothing
    (?:Fail|Unexpected Pass|Timeout): {1,20}<bad>[ ]{0,8}$
    (?:Failed|Failing|Unresolved|Timed Out|Unexpectedly Passed) Tests \(<bad>\):$
    [ ]<bad> FAILED TESTS?$|[ ]{5}Failed: <bad>$
    (?:\[doctest\] )?test cases: {1,8}<n> \|(?:[^|\n]{1,40}\|){0,2} {1,8}<bad> failed
    .*\(Wstat: .+ Failed: <bad>\)
    <n> [Ss]cenarios? \(<bad> failed
    [ ]{2}Unexpected (?:Failures|Passes) {0,8}: <bad>$
GROUP COUNTS: of files or suites, of interest where nothing finer is counted
    Test Suites: <n> .+
    [ ]{1,8}Test Files {2,8}<n> .+\(\d
FAILED:
    (?:=+ )?no tests ran(?: in|$)|No test(?:s| files) found, exiting with code 1$
    (?:__main__\.py|pytest|py\.test): error:[ ]
    Coverage failure:[ ]|FAIL Required test coverage of[ ]
    [ ]{1,4}evaluation failed :\(
    nox > Session .+ (?:failed|aborted)\.$
    [^\n.]{1,80}\.{3,80}+Failed$
    \[warn\] Code style issues (?:found )?in[ ]
    (?:✗|x|error) Build failed in[ ]|error during build:|(?:✖ )?Failed to compile\.$
    npm (?:ERR!|error) (?:Missing script|code ELIFECYCLE)|.*npm (?:ERR!|error) Lifecycle script[ ]
    (?:error| ELIFECYCLE ) Command failed with exit code
    Failed: {1,8}[\w@/-]+#|[ ]{1,4}NX {1,4}(?:Ran target|Running target).+failed
    error: could not compile[ ]|error: test (?:run )?failed
    FAIL(?:\t|$)|Result: FAIL$|(?:FAILURES|ERRORS)!$
    .*ld returned \d{1,3} exit status
    [\w./-]{0,40}make(?:\[\d{1,3}\])?: \*\*\*[ ]|[\w./-]{1,200}:<n>: \*\*\*[ ]
    -- Configuring incomplete, errors occurred!|ninja: (?:build stopped|error|fatal)
    (?:\[INFO\] )?BUILD FAIL(?:URE|ED)\b|\[error\] (?:\([^)\n]{1,80}\) |Total time)
    [ ]{0,2}Build FAILED\.|\*\* (?:BUILD|TEST|ARCHIVE) FAILED \*\*
    .*Build did NOT complete successfully|(?:.*: )?Some tests failed\.
    ERROR: failed to (?:solve|build)\b|error: Recipe `
    <n> [Ss]cenarios? \(.{0,80}\b(?:failed|undefined|ambiguous)\b
    Test Run (?:Failed|Aborted)\.|[ ]{0,2}Test run summary: (?:Failed|Aborted|Zero)
    //\S{1,200} {1,200}(?:\(cached\) )?(?:FAILED|TIMEOUT|NO STATUS|FLAKY, failed)\b
    [ ]{2}(?:Failed|Unresolved|Timed Out|Unexpectedly Passed) {0,20}: <n> \(
    \[  FAILED  \][ ]|Bail out!|\[doctest\] Status: FAILURE!
PASSED: where the end of the output is there
    Ran <n> tests? in .*\n\nOK(?: \(.+\))?$|OK \(<n> tests?, |OK, but[ ]
    All checks passed!$|Success: no issues found|No issues found!|[ ]{0,2}\[OK\] No errors
    <n> files? (?:already formatted$|(?:would be )?left unchanged\.$)
    [ ]{1,4}congratulations :\)
    [ ]{2}<n> passing \(
    <n> [Ss]cenarios? \((?:<n> (?:passed|skipped)(?:, )?){1,2}\)$
    Executed <n> out of <n> tests?: <n> tests? pass(?:es)?\.$
    Test Run Successful\.|[ ]{0,2}Test run summary: Passed!
    \[  PASSED  \] [1-9]\d{0,6} tests?\.$|All tests successful\.$|\# ok$
    \[doctest\] Status: SUCCESS!
    Ok: {1,20}[1-9]\d{0,6}[ ]{0,8}$|[ ]{2}Expected Passes {0,8}: [1-9]
    Total Discovered Tests: .+\n(?:[ ]{2}\w.+\n){0,4}?[ ]{2}Passed {0,20}: [1-9]
    All matched files use Prettier code style!$
    .*Successfully ran targets?[ ]
    ok  \t|Result: PASS$
    (?:\[INFO\] )?BUILD SUCCESS(?:FUL)?\b|\[success\][ ]
    \*\* (?:BUILD|TEST|ARCHIVE) SUCCEEDED \*\*
    .*Build completed successfully|(?:.*(?:: |\] ))?All tests passed(?:[!.]| \()|.*All specs passed!
    Success! The configuration is valid
BUILT: the same, of a build, which says nothing of the tests behind it
    Successfully built .+\.(?:whl|tar\.gz)
    ✓ built in[ ]|⚡ Done in[ ]
    webpack [\d.]+ compiled (?:successfully|with <n> warnings?)
    g?make(?:\[\d{1,3}\])?: (?:Nothing to be done for[ ]|.+ is up to date\.$)
    ninja: no work to do\.$
    [ ]{0,2}Build succeeded(?:\.|(?: with <n> warning\(s\))? in )|Build complete!
    Application bundle generation complete\.
    [ ]{1,8}Finished `?\w{1,40}`?[ ]|\[100%\] Built target[ ]|\[(?P<step><n>)/(?P=step)\][ ]
PART PASSED: where the whole output is there
    [^\n.]{1,80}\.{3,80}+Passed$|nox > Session .+ was successful\.$
    [ ]{2}<n> (?:tests? passed$|passed \()
    No syntax errors detected
EACH TEST: one failure of a test; passes are not reported so
    not ok(?: <n>\b| -|$)(?!.*\# (?i:todo|skip))
    (?:FAIL|XPASS|UNRESOLVED|TIMEOUT): .{1,200} :: .{1,200} \(<n> of <n>\)$
EACH: one error; passes are not reported so
    [^\s:][^:\n]*:<n>:<n>: [A-Z]{1,5}\d{2,5}\b
    ERROR: .+ Imports are incorrectly|Errors parsing[ ]|\*\*\* Error compiling[ ]
    (?:.*(?:: | - ))?error TS<n>:[ ]|Type error:[ ]|✘ \[ERROR\][ ]
    \[warn\] (?!Code style issues).+\.\w{1,8}$|\[error\] .+\.\w{1,8}:[ ]
    error\[E\d{4}\]:[ ]|Diff in .+:<n>:$|In .+ line <n>:$
    --- FAIL:[ ]|(?:vet: )?[\w./-]+\.go:<n>:<n>:[ ]
    (?:[:\w]{1,60}(?=/))?[^\s:(][^\n:(]*:<n>(?::<n>)?: (?:fatal )?error\b:?[ ]
    [^\n(]+\(<n>(?:,<n>){0,3}\): error [A-Z]{1,5}\d
    [ ]{0,4}[^\s:][^\n:]*:<n>:<n> - error:[ ]|[\w.+-]{1,60}: fatal error:[ ]
    .*: undefined reference to[ ]|CMake Error(?: at|:)
    (?:MSBUILD|CSC) : error [A-Z]{1,6}\d
LOOKS FAILED: believed where nothing clearer is said
    Traceback \(most recent call last\):
    (?:\w{1,60}\.){0,6}\w{0,60}(?:Error|Exception)(?::|$)
    \[ERROR\][ ]|(?:error|ERROR|fatal|FATAL|panic):[ ]|thread '.+' panicked at[ ]
    .+: (?:command )?not found$|.*: No module named \S{1,80}$|.+: line <n>: syntax error
    Segmentation fault|PHP (?:Parse|Fatal) error:[ ]
    (?i:.*\b(?:tests?|checks?|build|compilation) failed\b)
LOOKS PASSED: the same, where the whole output is there
    Your code has been rated at[ ]|Checked <n> files?\b|PASS$|\?   \t.+\[no test files\]
    (?: ✓ )?Compiled successfully
    (?i:.*\bno (?:errors|issues|problems|warnings)\b)
    (?i:.*\b(?:(?:tests?|checks?|build) (?:passed|succeeded)|build successful)\b)
    (?i:.*\b(?:successfully (?:built|compiled)|compiled successfully)\b)
LOOSE COUNTS: words that anybody uses
    (?!<n> \w{1,12} \()(?i:.*?(?<![\w.])<n> (?:\w{1,12} )?(?:<outcome>)\b.*)
PLACES: files with errors; the first of these lines that finds some counts
    FAILED ([^\s:]+)::
    ERROR ([^\s:]+\.py)\b
    \[ERROR\] ([^\s:]+):\[\d
    (?:vet: )?([\w./-]+\.go):<n>:<n>:[ ]
    (?:ERROR: |[:\w]{1,60}(?=/)|[\w@/-]{1,80}: | {0,4})(<path>)(?::<n>){1,2}(?:: | - )<code>
    (?:[\w@-]{1,40}:[\w@-]{1,40}: )?(<path>)\(<n>(?:,<n>){0,3}\): error\b
    [ ]{1,6}--> ([^\s:]+):\d
    [ ]?FAIL {1,2}(?:\./)?(\S{1,250}\.\w{2,4})\b
    would reformat (\S+)$
    ERROR: (\S+) Imports are
"""
"""Beginnings of lines, by what such a line says. ``<n>`` is a count, ``<bad>`` that of
failures; a line of counts without it is counted by its words."""
_MACROS: Final = {
    "<outcome>": "pass(?:ed|ing)|fail(?:ed|ing)|failures?|errors?",
    "<n>": r"\d{1,7}",
    "<path>": r"[^\s:([][^\n:(]*\.\w{1,8}",
    "<code>": r"(?:(?:fatal )?error\b|[A-Z]{1,5}\d{2,5}\b)",
    "<pytest>": "failed|passed|skipped|deselected|xfailed|xpassed|warnings?|errors?|rerun"
    "|subtests passed|subtests failed",
}


def _patterns(meaning: str) -> list[str]:
    """The lines of the table below a meaning."""
    text = _TABLE.partition(f"\n{meaning}:")[2].partition("\n")[2]
    for macro, pattern in _MACROS.items():
        text = text.replace(macro, pattern)
    lines = text.split("\n")
    end = next(n for n, line in enumerate(lines) if not line.startswith(" "))
    return [line.strip() for line in lines[:end]]


def _compiled(meaning: str) -> re.Pattern[str]:
    parts = "|".join(_patterns(meaning)).split("<bad>")
    text = parts[0] + "".join(
        f"(?P<bad{number}>\\d{{1,7}}|no){part}" for number, part in enumerate(parts[1:])
    )
    return re.compile(f"^(?:{text})", re.ASCII | re.MULTILINE)


_SURE: Final = {
    meaning: _compiled(meaning)
    for meaning in (
        *("WHOLE COUNTS", "COUNTS", "LAST COUNTS", "SAME COUNTS", "SUITE COUNTS", "PART COUNTS"),
        *("BAD COUNTS", "GROUP COUNTS", "FAILED", "PASSED", "BUILT", "PART PASSED"),
        *("EACH TEST", "EACH"),
    )
}
_LOOKS: Final = {
    meaning: _compiled(meaning) for meaning in ("LOOKS FAILED", "LOOKS PASSED", "LOOSE COUNTS")
}
_PLACES: Final = [re.compile(f"^{each}", re.ASCII | re.MULTILINE) for each in _patterns("PLACES")]
_TAP_PLAN: Final = re.compile(r"^1\.\.(\d{1,7})$", re.ASCII | re.MULTILINE)
_TAP_TEST: Final = re.compile(r"^(?:not )?ok(?: \d{1,7}\b| -|$)", re.ASCII | re.MULTILINE)
_CUT: Final = re.compile(
    r"(?:truncated|omitted) \d{1,9} (?:of|lines|characters|chars|tokens|bytes)"
    r"|\d{1,9} (?:more )?(?:lines|characters|chars|tokens|bytes) (?:truncated|omitted|left out)"
    r"|output (?:was )?truncated",
    re.ASCII | re.IGNORECASE,
)
"""What agent programs, and we, put in place of the middle of a long output."""
_NUMBER_FIRST: Final = re.compile(
    r"(?<![\w.])(?P<n>\d{1,7}) (?:\w{1,12} )?"
    r"(?P<word>passed|failed|failing|passing|failures?|errors?|fails|passes)\b",
    re.ASCII | re.IGNORECASE,
)
_WORD_FIRST: Final = re.compile(
    r"\b(?P<word>failures|errors|failed|unexpected successes)[=:]? {0,8}(?P<n>\d{1,7})\b",
    re.ASCII | re.IGNORECASE,
)


class Kept(IntEnum):
    """How much of a build's output is there."""

    ALL = 0
    END = 1
    """``| tail -3``: a line before it may have said something else."""
    SOME = 2
    """``| grep passed``, ``| head``: any line may be missing."""


class Summary(NamedTuple):
    """What the output says."""

    passed: bool | None = None
    """None = nothing that is understood."""
    errors: int | None = None
    """None = they are not counted."""
    places: tuple[str, ...] = ()
    """Files with errors, each once."""
    line: str = ""
    """The first that tells of a failure."""
    tests: int | None = None
    """How many tests passed; None = it does not say."""


class _Found(NamedTuple):
    line: str
    bad: int
    good: int


def summary_of(
    output: str, *, is_test: bool, has_test: bool | None = None, kept: Kept = Kept.ALL
) -> Summary:
    """Read an output.

    Args:
        output: Of the tool; of a long one its beginning and its end.
        is_test: Only tests were run: what looks like an error of a compiler may be one that a test
            wanted.
        has_test: Tests were among what was run: that something was built says nothing of them;
            None = as ``is_test``.
        kept: How much of what the build printed is in it.
    """
    text = _shortened(output)
    if len(output) >= OUTPUT_CHARS_MAX or _CUT.search(text) is not None:
        kept = max(kept, Kept.END)  # a middle that is missing
    found = {meaning: _found(text, meaning, pattern) for meaning, pattern in _SURE.items()}
    each = found["EACH"]
    counted = [one for meaning in found if meaning.endswith("COUNTS") for one in found[meaning]]
    failing = [one for one in counted if one.bad] + found["FAILED"] + found["EACH TEST"]
    if failing or (each and not is_test):
        return Summary(False, _errors(found), _places(text), (each or failing)[0].line)
    built = () if (is_test if has_test is None else has_test) else found["BUILT"]
    if _passes(found, kept) or (built and kept < Kept.SOME) or _is_whole_tap(text):
        tests = sum(one.good for one in counted) - sum(one.good for one in found["GROUP COUNTS"])
        return Summary(True, 0, tests=tests or None)
    found |= {meaning: _found(text, meaning, pattern) for meaning, pattern in _LOOKS.items()}
    loose = found["LOOSE COUNTS"]
    weak = [*each, *found["LOOKS FAILED"], *(one for one in loose if one.bad)]
    if weak:
        bad = _errors(found) or max((one.bad for one in loose), default=0) or None
        # Of a traceback the last line says what it was.
        lines = [one.line for one in weak if not one.line.startswith("Traceback")]
        return Summary(False, bad, _places(text), (lines or [weak[0].line])[0])
    is_told = kept is Kept.ALL and (loose or found["LOOKS PASSED"])
    return Summary(True, 0) if is_told else Summary()


def _passes(found: dict[str, list[_Found]], kept: Kept) -> bool:
    """Whether a line says so that holds for as much of the output as there is."""
    # "Tests: 0 total" is what is left of suites that could not be read.
    if any(re.search("[1-9]", one.line) for one in found["WHOLE COUNTS"]):
        return True
    if kept is Kept.SOME:
        return False
    end = ("WHOLE COUNTS", "COUNTS", "LAST COUNTS", "SAME COUNTS", "PASSED")
    if any(found[meaning] for meaning in end):
        return True
    if kept is Kept.END:
        return bool(found["SUITE COUNTS"] and found["GROUP COUNTS"])
    all_of_it = ("SUITE COUNTS", "PART COUNTS", "GROUP COUNTS", "PART PASSED")
    return any(found[meaning] for meaning in all_of_it)


def _is_whole_tap(text: str) -> bool:
    """Whether it is TAP in which each planned test is ok."""
    plan = _TAP_PLAN.search(text)
    oks = _TAP_TEST.findall(text)
    return plan is not None and bool(oks) and len(oks) == int(plan[1])


def _shortened(output: str) -> str:
    """Of a long output the beginning and the end; of long lines the beginning."""
    if len(output) > OUTPUT_CHARS_MAX:
        half = OUTPUT_CHARS_MAX // 2
        output = f"{output[:half]}\n{output[-half:]}"
    return "\n".join(line[:LINE_CHARS_MAX] for line in output.split("\n"))


def _found(text: str, meaning: str, pattern: re.Pattern[str]) -> list[_Found]:
    found = []
    for match in islice(pattern.finditer(text), MATCHES_MAX):
        end = text.find("\n", match.start())
        line = text[match.start() : end if end >= 0 else len(text)].strip()
        good = bad = 0
        if meaning.endswith("COUNTS"):
            for each in list(_WORD_FIRST.finditer(line)) or _NUMBER_FIRST.finditer(line):
                if each["word"].lower().startswith("pass"):
                    good += int(each["n"])
                else:
                    bad += int(each["n"])
        if match.lastgroup is not None and match.lastgroup.startswith("bad"):
            bad = int(match[match.lastgroup].replace("no", "0"))
        found.append(_Found(line, bad, good))
    return found


def _errors(found: dict[str, list[_Found]]) -> int | None:
    """What is counted in the finest way that there is."""
    finest = ("WHOLE COUNTS", "COUNTS", "SUITE COUNTS", "PART COUNTS", "BAD COUNTS")
    total = sum(each.bad for meaning in finest for each in found[meaning])
    total += sum(each.bad for each in found["LAST COUNTS"][-1:])
    total += max((each.bad for each in found["SAME COUNTS"]), default=0)
    total = total or len(found["EACH TEST"])
    return total or len(found["EACH"]) or sum(each.bad for each in found["GROUP COUNTS"]) or None


def _places(text: str) -> tuple[str, ...]:
    for pattern in _PLACES:
        names = (match[1].replace("\\", "/").rpartition("/")[2] for match in pattern.finditer(text))
        if found := tuple(islice(dict.fromkeys(islice(names, MATCHES_MAX)), PLACES_MAX)):
            return found
    return ()
