"""JUnit XML of real programs is counted, and what is made to harm does none."""

import itertools
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from tests.engine.verification.checking import verify

from subagents.domain.run.spec import Artifact, Contract
from subagents.engine.verification.artifacts import JUNIT_BYTES_MAX
from subagents.engine.verification.junit_reports import (
    DEPTH_MAX,
    TOKEN_BYTES_MAX,
    JUnitReport,
    read_junit,
)
from subagents.engine.verification.work_root import FileFault

TESTS = """
import pytest
def test_good(): pass
def test_bad(): assert False
@pytest.mark.skip
def test_later(): pass
class TestMore:
    def test_broken(self, no_such_fixture): pass
"""
REPORTS: Final = Path(__file__).parents[2] / "data" / "junit"
COUNTS: Final = {
    "bats-green": (1, 1, 0),
    "bats-red": (2, 0, 1),
    "bazel-green": (1, 0, 0),
    "bazel-red": (1, 0, 1),
    "behave-green": (1, 1, 0),
    "behave-none": (0, 2, 0),
    "behave-red": (3, 0, 2),
    "bun-green": (1, 2, 0),
    "bun-red": (2, 0, 1),
    "catch2-green": (3, 0, 0),
    "catch2-red": (4, 0, 2),
    "ctest-green": (1, 2, 0),
    "ctest-red-lost": (1, 3, 1),
    "ctest-red": (3, 2, 2),
    "cucumber-green": (1, 1, 0),
    "cucumber-red": (3, 0, 3),
    "deno-green": (3, 1, 0),
    "deno-red": (2, 0, 1),
    "doctest-green": (2, 0, 0),
    "doctest-red": (2, 0, 1),
    "dotnet-green": (1, 1, 0),
    "dotnet-red": (2, 0, 1),
    "go-junit-report-green": (1, 1, 0),
    "go-junit-report-red": (3, 0, 2),
    "gotestsum-green": (3, 1, 0),
    "gotestsum-red-build": (0, 0, 1),
    "gotestsum-red": (4, 0, 3),
    "gradle-green": (1, 1, 0),
    "gradle-red": (2, 0, 1),
    "gtest-green": (1, 2, 0),
    "gtest-none-setup": (0, 1, 0),
    "gtest-none": (0, 2, 0),
    "gtest-red": (2, 2, 1),
    "jenkins-green": (1, 2, 0),
    "jenkins-red": (3, 0, 2),
    "jest-green": (3, 1, 0),
    "jest-none": (0, 0, 0),
    "jest-red-broken": (0, 0, 2),
    "jest-red": (2, 0, 2),
    "junit5-green": (1, 2, 0),
    "junit5-red-setup": (1, 0, 1),
    "junit5-red": (2, 0, 2),
    "lit-green": (2, 1, 0),
    "lit-red": (4, 0, 3),
    "meson-green": (4, 2, 0),
    "meson-red": (9, 2, 3),
    "mocha-green": (2, 2, 0),
    "mocha-red": (2, 0, 2),
    "mocha-xunit-green": (2, 2, 0),
    "mocha-xunit-red": (1, 0, 2),
    "mypy-green": (1, 0, 0),
    "mypy-red": (1, 0, 1),
    "nextest-green": (2, 0, 0),
    "nextest-red": (2, 0, 1),
    "node-green": (2, 4, 0),
    "node-red": (2, 0, 2),
    "nose2-green": (3, 2, 0),
    "nose2-red-setup": (0, 0, 1),
    "nose2-red": (5, 1, 4),
    "pester-green": (1, 2, 0),
    "pester-red": (2, 0, 1),
    "phpunit-green": (3, 2, 0),
    "phpunit-red-provider": (2, 0, 1),
    "phpunit-red": (2, 0, 2),
    "playwright-green": (6, 4, 0),
    "playwright-red": (4, 2, 4),
    "prove-green": (1, 1, 0),
    "prove-red": (3, 0, 3),
    "pytest-2-green": (1, 1, 0),
    "pytest-green": (3, 2, 0),
    "pytest-reruns-green": (2, 0, 0),
    "pytest-red-setup": (1, 0, 1),
    "pytest-red": (5, 0, 5),
    "robot-green": (1, 1, 0),
    "robot-red": (2, 0, 1),
    "rspec-green": (1, 2, 0),
    "rspec-none": (0, 0, 0),
    "rspec-red": (2, 0, 1),
    "ruff-green": (1, 0, 0),
    "ruff-red": (1, 0, 1),
    "surefire-green": (2, 1, 0),
    "surefire-red": (2, 0, 2),
    "vitest-green": (2, 2, 0),
    "vitest-red-broken": (1, 0, 1),
    "vitest-red": (2, 0, 1),
    "xmlrunner-green": (3, 2, 0),
    "xmlrunner-red-setup": (1, 0, 1),
    "xmlrunner-red": (6, 0, 5),
    "xunit-green": (1, 1, 0),
    "xunit-red": (2, 0, 2),
}
"""Different tests that ran, tests that did not, failures: of reports that these programs wrote, or
(bazel, dotnet, go-junit-report, gradle, jenkins, nextest, pester, pytest-2, xunit) whose form
they document. The name says how the program itself ended; ``none`` = nothing ran."""
LAUGHS = b"""<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY a "ha">%s]><testsuite>&z;</testsuite>"""
BOMB = LAUGHS % b"".join(
    b'<!ENTITY %c "%s">' % (98 + n, b"&%c;" % (97 + n) * 10) for n in range(25)
)
OUTSIDE = b'<!DOCTYPE t [<!ENTITY x SYSTEM "file:///etc/passwd">]><testsuite name="&x;"/>'


def read(data: bytes) -> JUnitReport:
    return read_junit([data])


def pytest_report(place: Path, text: str) -> None:
    (place / "test_it.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "--rootdir=."]
    subprocess.run(
        [*command, "--junitxml=j.xml", "test_it.py"],
        cwd=place,
        timeout=60,
        check=False,
        capture_output=True,
    )


@pytest.mark.requirement("contract:junit")
def test_what_pytest_writes_is_counted(tmp_path: Path) -> None:
    pytest_report(tmp_path, TESTS)
    assert read((tmp_path / "j.xml").read_bytes()) == JUnitReport(
        ran=3, skipped=1, failed=2, names=("test_it.test_bad", "test_it.TestMore.test_broken")
    )
    contract = Contract(artifacts=(Artifact(path="j.xml", junit=True, min_tests=4),))
    check = verify(contract, tmp_path).checks[0]
    assert check.reason == (
        "File j.xml has 2 failed tests: test_it.test_bad, test_it.TestMore.test_broken;"
        " has 3 tests that ran, minimum 4 required"
    )
    assert str(check.evidence).endswith("3 tests, 1 skipped, 2 failed")


@pytest.mark.requirement("contract:junit")
def test_what_pytest_writes_of_good_tests_passes(tmp_path: Path) -> None:
    pytest_report(tmp_path, "def test_a(): pass\ndef test_b(): pass\n")
    for least, passed in ((2, True), (3, False)):
        contract = Contract(artifacts=(Artifact(path="j.xml", junit=True, min_tests=least),))
        assert verify(contract, tmp_path).checks[0].passed is passed


@pytest.mark.requirement("contract:junit")
def test_a_module_that_cannot_be_imported_is_a_failure(tmp_path: Path) -> None:
    pytest_report(tmp_path, "import no_such_module\n")
    assert read((tmp_path / "j.xml").read_bytes()).failed == 1


@pytest.mark.requirement("contract:junit")
@pytest.mark.parametrize("name", COUNTS)
def test_a_report_of_each_program_is_judged_as_the_program_ended(name: str) -> None:
    report = read((REPORTS / f"{name}.xml").read_bytes())
    verdict = "red" if report.failed else "green" if report.ran else "none"

    assert (report.ran, report.skipped, report.failed) == COUNTS[name]
    assert verdict in name.split("-")
    assert bool(report.names) is (report.failed > 0 and "build" not in name)


@pytest.mark.requirement("contract:junit")
def test_each_recorded_report_is_small_and_judged() -> None:
    sizes = {file.stem: file.stat().st_size for file in REPORTS.iterdir()}

    assert sizes.keys() == COUNTS.keys()
    assert max(sizes.values()) <= 4_000
    tools = [{name.partition(f"-{end}")[0] for name in COUNTS} for end in ("green", "red")]
    assert len(tools[0] & tools[1]) >= 15


def report_of(counts: str, *cases: str) -> bytes:
    return f"<testsuite {counts}>{''.join(cases)}</testsuite>".encode()


PASSED: Final = '<testcase classname="c" name="passed"/>'
OTHER: Final = '<testcase classname="c" name="other"/>'
FAILED: Final = '<testcase classname="c" name="failed"><failure/></testcase>'
FLAKY: Final = '<testcase name="flaky"><flakyFailure/></testcase>'
FAILED_TWICE: Final = '<testcase name="twice"><failure/><rerunFailure/></testcase>'
SKIPPED: Final = '<testcase classname="c" name="skipped"><skipped/></testcase>'


def counts_of(data: bytes) -> tuple[int, int, int]:
    report = read(data)
    return report.ran, report.skipped, report.failed


@pytest.mark.requirement("contract:junit-strict")
@pytest.mark.parametrize(
    "said",
    [
        *('status="notrun"', 'status="NotRun"', 'status="untested"', 'status="disabled"'),
        *('result="skipped"', 'result="suppressed"', 'status="run" result="skipped"'),
        *('status=" Skipped "', 'status="Not Executed"', 'status="pending"', 'status="ignored"'),
        *('outcome="NotExecuted"', 'executed="False"', 'disabled="true"', 'skipped="1"'),
        *('ignored="true"', 'status="Inconclusive"', 'status="todo"', 'status="purple"'),
        *(
            'Status="Skipped"',
            'STATUS="notrun"',
            'status="200"',
            "><skipped/",
            "><disabled/",
            "><ignored/",
            "><pending/",
        ),
        *('><n:skipped xmlns:n="urn:n"/', '><skipped type="todo"/><failure/'),
    ],
)
def test_a_test_that_did_not_run_in_whatever_words_is_not_counted(said: str) -> None:
    case = f'<testcase name="x" {said}></testcase>' if said[0] == ">" else f"<testcase {said}/>"
    assert counts_of(report_of("", PASSED, case)) == (1, 1, 0)


@pytest.mark.requirement("contract:junit-strict")
@pytest.mark.parametrize(
    "said",
    [
        *('status="failed"', 'Result="Failure"', 'status="ERROR"', 'status="fail"'),
        *('status="timed out"', 'status="undefined"', 'success="False"', 'outcome="Broken"'),
        *('status="passed" result="failed"', 'failures="1"', 'errors="1.0"', "><failure/"),
        *(
            "><error/",
            "><rerunFailure/",
            "><skipped/><failure/",
            "><system-out><error/></system-out",
        ),
        *('><skipped message="Unable to find executable"/', "><failure/><testcase/"),
    ],
)
def test_a_test_that_failed_in_whatever_words_is_a_failure(said: str) -> None:
    case = f'<testcase name="x" {said}></testcase>' if said[0] == ">" else f"<testcase {said}/>"
    assert read(report_of("", PASSED, case)).failed == 1


@pytest.mark.requirement("contract:junit-strict")
@pytest.mark.parametrize(
    "said",
    [
        *('status="run"', 'status="PASSED"', 'result="completed"', 'status="ok"', 'status=""'),
        *('status="Success"', 'executed="True" success="True"', 'failures="0" errors=""'),
        *('skipped="false"', 'status="FIXED"', "><flakyFailure/", "><system-out>x</system-out"),
    ],
)
def test_a_test_that_passed_in_whatever_words_is_counted(said: str) -> None:
    case = f'<testcase name="x" {said}></testcase>' if said[0] == ">" else f"<testcase {said}/>"
    assert counts_of(report_of("", case)) == (1, 0, 0)


@pytest.mark.requirement("contract:junit-strict")
@pytest.mark.parametrize(
    ("counts", "judged"),
    [
        *(('tests="2" skipped="1"', (1, 1, 0)), ('tests="2" skips=" 1 "', (1, 1, 0))),
        *(('tests="2" disabled="1.0"', (1, 1, 0)), ('tests="2" ignored="+1"', (1, 1, 0))),
        *(('skip="1"', (1, 1, 0)), ('tests="2" notrun="1"', (1, 1, 0))),
        ('tests="2" skipped="1" ignored="1"', (1, 1, 0)),
        ('tests="2" skipped="1" disabled="1"', (0, 2, 0)),
        *(('skipped="2"', (0, 2, 0)), ('status="skipped"', (0, 2, 0))),
        *(('tests="1"', (1, 0, 0)), ('tests="0"', (0, 0, 0)), ('tests="9"', (2, 0, 0))),
        *(('tests="1" skipped="-1"', (1, 0, 0)), ('tests="" skipped=""', (2, 0, 0))),
        *(('failures="2"', (2, 0, 2)), ('errors=" 2 "', (2, 0, 2)), ('failures="1.0"', (2, 0, 1))),
        *(('failures="1" errors="1"', (2, 0, 2)), ('failed="1"', (2, 0, 1))),
        *(('status="failed"', (2, 0, 1)), ('success="false"', (2, 0, 1))),
        *(('failures="0.5"', (2, 0, 1)), ('failures="-1"', (2, 0, 1))),
        *(('result="FAILED"', (2, 0, 1)), ('failures="0" errors="none"', (2, 0, 0))),
    ],
)
@pytest.mark.parametrize(
    "form",
    [
        "<testsuite {}>{}</testsuite>",
        "<testsuites {}>{}</testsuites>",
        "<testsuites {}><testsuite>{}</testsuite></testsuites>",
        "<testsuites {}><testsuite><testsuite>{}</testsuite></testsuite></testsuites>",
        "<testsuites><testsuite {}>{}</testsuite></testsuites>",
    ],
)
def test_what_a_report_counts_and_does_not_list_holds_where_it_is_stricter(
    form: str, counts: str, judged: tuple[int, int, int]
) -> None:
    assert counts_of(form.format(counts, PASSED + OTHER).encode()) == judged


@pytest.mark.requirement("contract:junit-strict")
@pytest.mark.parametrize(
    ("counts", "judged"),
    [
        # Some count what is directly in a suite, some all that is in it.
        *(('tests="1" skipped="0"', (2, 0, 0)), ('tests="2"', (2, 0, 0)), ('tests="0"', (2, 0, 0))),
        *(('tests="2" skipped="2"', (0, 2, 0)), ('tests="1" disabled="1"', (0, 1, 0))),
        *(('tests="2" skipped="1"', (1, 1, 0)), ('skipped="1"', (1, 1, 0))),
        *(('tests="9" disabled="8"', (1, 8, 0)), ('tests="3" skipped="1"', (2, 1, 0))),
        *(('failures="1"', (2, 0, 1)), ('errors="2"', (2, 0, 2)), ('status="failed"', (2, 0, 1))),
    ],
)
def test_a_suite_of_suites_may_count_one_level_or_all(
    counts: str, judged: tuple[int, int, int]
) -> None:
    suites = f"<testsuite {counts}><testsuite>{PASSED}{OTHER}</testsuite></testsuite>"
    assert counts_of(f'<testsuites tests="2">{suites}</testsuites>'.encode()) == judged


@pytest.mark.requirement("contract:junit-strict")
@pytest.mark.parametrize(
    ("text", "judged"),
    [
        ("<testsuite>{}<error/></testsuite>", (1, 0, 1)),
        ("<testsuite><failure/>{}</testsuite>", (1, 0, 1)),
        ("<testsuite>{}<properties><failure/></properties></testsuite>", (1, 0, 1)),
        ("<testsuites><error/><testsuite>{}</testsuite></testsuites>", (1, 0, 1)),
        ("<testsuite><skipped/>{}</testsuite>", (0, 1, 0)),
        # Surefire counts each try that failed.
        (f'<testsuite tests="2" failures="1">{FLAKY}</testsuite>', (1, 0, 0)),
        (f'<testsuite tests="2" failures="2">{FLAKY}</testsuite>', (1, 0, 1)),
        (
            f'<testsuites failures="1"><testsuite errors="1">{FLAKY}</testsuite></testsuites>',
            (1, 0, 0),
        ),
        (f'<testsuite failures="2">{FAILED_TWICE}</testsuite>', (1, 0, 1)),
        ('<testsuite failures="0"><testcase><rerunError/></testcase></testsuite>', (1, 0, 1)),
        ('<testsuite><testcase name="around"><failure/>{}</testcase></testsuite>', (2, 0, 1)),
        ('<testsuites errors="1"/>', (0, 0, 1)),
        # Skipped ones that are not counted among the tests.
        (f'<testsuite tests="1" skips="1">{{}}{SKIPPED}</testsuite>', (1, 1, 0)),
        # Each test is counted once.
        ('<testsuite tests="3">{0}{0}{0}</testsuite>', (1, 0, 0)),
        (f"<testsuite>{{0}}{SKIPPED}{FAILED}{{0}}</testsuite>", (2, 1, 1)),
        ("<testsuite><testcase/><testcase/><testcase name=''/></testsuite>", (1, 0, 0)),
        (
            "<testsuite><testsuite>{0}</testsuite><testsuite>{0}</testsuite></testsuite>",
            (1, 0, 0),
        ),
        ('<testsuites>{0}<testsuite name="s">{0}</testsuite></testsuites>', (2, 0, 0)),
        ('<testsuite>{0}<testsuite hostname="firefox">{0}</testsuite></testsuite>', (2, 0, 0)),
    ],
)
def test_of_what_a_report_says_and_what_it_lists_the_stricter_holds(
    text: str, judged: tuple[int, int, int]
) -> None:
    assert counts_of(text.format(PASSED).encode()) == judged


@pytest.mark.requirement("contract:junit-strict")
@pytest.mark.parametrize("name", ["tests", "failures", "errors", "skipped", "disabled"])
@pytest.mark.parametrize("text", ["many", "1,5", "0x1", "1e9", "9" * 30, "½", "٣", "1 2"])
def test_a_count_that_is_no_number_is_refused_in_words(name: str, text: str) -> None:
    with pytest.raises(FileFault, match=f'says {name}="{text}", which is no count'):
        read(report_of(f'{name}="{text}"', PASSED))


@pytest.mark.requirement("contract:junit-strict")
def test_a_contract_says_why_fewer_tests_count_than_the_report_lists(tmp_path: Path) -> None:
    odd = '<testcase name="odd" status="purple"/>'
    (tmp_path / "j.xml").write_bytes(report_of('tests="4" skipped="3"', PASSED, PASSED, OTHER, odd))
    contract = Contract(artifacts=(Artifact(path="j.xml", junit=True, min_tests=3),))

    assert verify(contract, tmp_path).checks[0].reason == (
        'File j.xml has 1 test that ran, minimum 3 required (the status "purple" is not known;'
        " 1 test listed again; 1 listed did not run by its own counts)"
    )


@pytest.mark.requirement("contract:junit-log")
@pytest.mark.parametrize(
    "log",
    [
        b"\x1b[31mred\x1b[0m",
        b"\x00\x08\x0b\x0c\x1f\x7f",
        b"&#27;[31m &#x1b; &#0; &#xFFFF; &#x110000; &#55357;&#56832; &#4294967296;",
        b"\xff\xfe\x80 latin \xe4, half a letter \xf0\x9f",
        b"\xed\xa0\x80 \xef\xbf\xbe \xc0\xbc",
        b"<![CDATA[\x1b[0m ]]]]><![CDATA[> &#27; <failure/>]]>",
        "😀 \u2028 \x85 \ud7ff".encode(),
    ],
)
@pytest.mark.parametrize("in_pieces_of", [1, 100_000])
def test_a_report_with_a_log_that_no_xml_can_hold_is_read(log: bytes, in_pieces_of: int) -> None:
    text = b'<testsuite tests="2" failures="1"><testcase name="a"><system-out>%s</system-out>' % log
    text += b'</testcase><testcase name="b"><failure>%s</failure></testcase></testsuite>' % log
    pieces = [text[at : at + in_pieces_of] for at in range(0, len(text), in_pieces_of)]

    assert read_junit(pieces) == JUnitReport(ran=2, skipped=0, failed=1, names=("b",))


@pytest.mark.requirement("contract:junit-log")
@pytest.mark.parametrize(
    ("declared", "encoding"),
    [
        *(("utf-16", "utf-16"), ("UTF-16", "utf-16-be"), ("utf-16", "utf-16-le")),
        *(("UTF-8", "utf-8-sig"), ("iso-8859-1", "latin-1"), ("windows-1252", "cp1252")),
        # A string of .NET's that was written to a file.
        *(("utf-16", "utf-8"), ("utf-16", "utf-8-sig")),
    ],
)
@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_a_report_is_read_in_the_encoding_that_it_has(
    declared: str, encoding: str, version: str
) -> None:
    text = f"<?xml version='{version}' encoding='{declared}' standalone='yes'?><!-- ä -->"
    report = f"{text}<testsuite><testcase name='ä'><failure/></testcase></testsuite>"

    assert read(report.encode(encoding)).names == ("ä",)


@pytest.mark.requirement("contract:junit-log")
def test_a_report_with_megabytes_of_logs_is_read_piece_by_piece(tmp_path: Path) -> None:
    line = b"x" * 99 + b"\n"
    with (tmp_path / "j.xml").open("wb") as file:
        file.write(b'<testsuite tests="1"><testcase name="a"><system-out>')
        for _ in range(20):
            file.write(line * 10_486)
        file.write(b"</system-out></testcase></testsuite>")
    contract = Contract(artifacts=(Artifact(path="j.xml", junit=True),))
    check = verify(contract, tmp_path).checks[0]

    assert check.passed
    assert str(check.evidence).endswith("1 test, 0 failed")


@pytest.mark.requirement("contract:junit")
def test_no_test_that_ran_is_no_success(tmp_path: Path) -> None:
    (tmp_path / "j.xml").write_text("<testsuite><testcase><skipped/></testcase></testsuite>")
    contract = Contract(artifacts=(Artifact(path="j.xml", junit=True),))
    assert verify(contract, tmp_path).checks[0].reason == (
        "File j.xml has 0 tests that ran, minimum 1 required"
    )


@pytest.mark.requirement("contract:junit")
@pytest.mark.parametrize(
    ("data", "told"),
    [
        (BOMB, "declares a document type"),
        (OUTSIDE, "declares a document type"),
        (b"", "is not valid XML: no element found"),
        (b"<testsuite>", "is not valid XML"),
        (b"<html/>", "is not JUnit XML: its root is <html>"),
        (b"<TestRun/>", "its root is <TestRun>"),
        (b"<assemblies/>", "is not JUnit XML"),
        (b"1..2\nok 1\n", "is not valid XML"),
        (b"<testsuite/><testsuite/>", "is not valid XML: junk after document element"),
        (b"<testsuite>" * (DEPTH_MAX + 1), f"is nested deeper than the {DEPTH_MAX} levels"),
        (b'<?xml version="1.0" encoding="x-none"?><testsuite/>', "its encoding x-none is"),
        (b'<?xml version="1.0" encoding="zlib"?><testsuite/>', "its encoding zlib is not known"),
        (b"\xff\xfe\x00", "is not valid XML"),
    ],
)
def test_what_is_no_report_or_a_trap_is_refused(data: bytes, told: str) -> None:
    with pytest.raises(FileFault, match=told):
        read(data)


@pytest.mark.requirement("contract:junit")
def test_a_tag_without_an_end_is_refused_before_it_is_held_in_memory() -> None:
    pieces = itertools.chain([b"<testsuite><testcase name='"], itertools.repeat(b"x" * 1_000_000))

    with pytest.raises(FileFault, match=f"has a tag or comment of more than {TOKEN_BYTES_MAX}"):
        read_junit(pieces)


@pytest.mark.requirement("contract:junit")
def test_a_report_is_read_up_to_a_bound(tmp_path: Path) -> None:
    with (tmp_path / "j.xml").open("wb") as file:
        file.truncate(JUNIT_BYTES_MAX + 1)
    contract = Contract(artifacts=(Artifact(path="j.xml", junit=True),))
    assert f"is larger than the {JUNIT_BYTES_MAX} bytes" in str(
        verify(contract, tmp_path).checks[0].reason
    )
