"""JUnit XML of real programs is counted, and what is made to harm does none."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.engine.verification.checking import verify

from subagents.domain.run.spec import Artifact, Contract
from subagents.engine.verification.junit_reports import JUNIT_BYTES_MAX, JUnitReport, read_junit
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
SUREFIRE = b"""<?xml version="1.0" encoding="UTF-8"?>
<testsuite xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" name="com.acme.CartTest"
    xsi:noNamespaceSchemaLocation="https://maven.apache.org/surefire/surefire-test-report.xsd"
    time="0.05" tests="3" errors="0" skipped="1" failures="1">
  <properties><property name="java.version" value="17"/></properties>
  <testcase name="adds" classname="com.acme.CartTest" time="0.01"/>
  <testcase name="removes" classname="com.acme.CartTest" time="0.01">
    <failure message="expected:&lt;1&gt; but was:&lt;2&gt;" type="AssertionError">trace</failure>
    <system-out><![CDATA[noise <testcase>]]></system-out>
  </testcase>
  <testcase name="later" classname="com.acme.CartTest"><skipped message="no"/></testcase>
</testsuite>
"""
LAUGHS = b"""<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY a "ha">%s]><testsuite>&z;</testsuite>"""
BOMB = LAUGHS % b"".join(
    b'<!ENTITY %c "%s">' % (98 + n, b"&%c;" % (97 + n) * 10) for n in range(25)
)
OUTSIDE = b'<!DOCTYPE t [<!ENTITY x SYSTEM "file:///etc/passwd">]><testsuite name="&x;"/>'


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
    assert read_junit((tmp_path / "j.xml").read_bytes()) == JUnitReport(
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
    assert read_junit((tmp_path / "j.xml").read_bytes()).failed == 1


@pytest.mark.requirement("contract:junit")
def test_what_surefire_writes_is_counted() -> None:
    assert read_junit(SUREFIRE) == JUnitReport(
        ran=2, skipped=1, failed=1, names=("com.acme.CartTest.removes",)
    )


@pytest.mark.requirement("contract:junit")
def test_failures_that_only_the_suite_counts_are_failures() -> None:
    assert read_junit(b'<testsuites><testsuite errors="1"/></testsuites>').failed == 1


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
        (b"<html/>", "is not JUnit XML"),
        (b'<?xml version="1.0" encoding="x-none"?><testsuite/>', "is not valid XML"),
        (b"\xff\xfe\x00", "is not valid XML"),
    ],
)
def test_what_is_no_report_or_a_trap_is_refused(data: bytes, told: str) -> None:
    with pytest.raises(FileFault, match=told):
        read_junit(data)


@pytest.mark.requirement("contract:junit")
def test_a_report_is_read_up_to_a_bound(tmp_path: Path) -> None:
    with (tmp_path / "j.xml").open("wb") as file:
        file.truncate(JUNIT_BYTES_MAX + 1)
    contract = Contract(artifacts=(Artifact(path="j.xml", junit=True),))
    assert "is larger than the 16777216 bytes" in str(verify(contract, tmp_path).checks[0].reason)
