"""Reads JUnit XML as pytest, Surefire and their kin write it, of any malice, at a bounded cost.

No document type is accepted, so no entity can be declared: neither the billion laughs nor a file
or an address of somebody else's choosing can be had from it.
"""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple
from xml.parsers import expat

from subagents.engine.verification.contract_files import Abandoned, never
from subagents.engine.verification.work_root import FileFault
from subagents.text import one_line

JUNIT_BYTES_MAX: Final = 16 * 1024 * 1024
NAMED_MAX: Final = 3
NAME_CHARS_MAX: Final = 120
_CHUNK_BYTES: Final = 256 * 1024
_SUITES: Final = frozenset({"testsuites", "testsuite"})


class JUnitReport(NamedTuple):
    """What a report says of its tests."""

    ran: int
    """Test cases, those not counted that were skipped."""
    skipped: int
    failed: int
    """Failures and errors, of the test cases or by the suites' own counts, whichever is more."""
    names: tuple[str, ...]
    """Of the first test cases that failed."""


def read_junit(data: bytes | bytearray, abandoned: Callable[[], bool] = never) -> JUnitReport:
    """Count the tests in a report.

    Raises:
        FileFault: It is no JUnit XML, or declares a document type.
        Abandoned: ``abandoned`` said so.
    """
    reader = _Reader()
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.StartDoctypeDeclHandler = _refuse_doctype
    try:
        for begin in range(0, len(data), _CHUNK_BYTES):
            parser.Parse(bytes(data[begin : begin + _CHUNK_BYTES]), False)
            if abandoned():
                raise Abandoned
        parser.Parse(b"", True)
    except (expat.ExpatError, ValueError, LookupError) as error:  # also of an unknown encoding
        raise FileFault(f"is not valid XML: {one_line(str(error), NAME_CHARS_MAX)}") from error
    if not reader.is_junit:
        raise FileFault("is not JUnit XML: its root is neither testsuites nor testsuite")
    return reader.report()


def _refuse_doctype(*_declared: object) -> None:
    raise FileFault("declares a document type, which no JUnit XML needs and may be used to attack")


class _Reader:
    def __init__(self) -> None:
        self.is_junit = False
        self._depth = 0
        self._case: str | None = None
        self._marks: set[str] = set()
        self._cases = self._skipped = self._failed = self._claimed = 0
        self._names: list[str] = []

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        name = name.rpartition(" ")[2]
        if self._depth == 0:
            self.is_junit = name in _SUITES
        self._depth += 1
        if name == "testsuite":
            self._claimed += _count(attributes, "failures") + _count(attributes, "errors")
        elif name == "testcase":
            places = (attributes.get("classname"), attributes.get("name"))
            self._case = one_line(".".join(filter(None, places)), NAME_CHARS_MAX) or "unnamed"
            self._marks.clear()
        elif self._case is not None:
            self._marks.add(name)

    def end(self, name: str) -> None:
        self._depth -= 1
        if self._case is None or name.rpartition(" ")[2] != "testcase":
            return
        self._cases += 1
        if self._marks & {"failure", "error"}:
            self._failed += 1
            self._names += [self._case] if len(self._names) < NAMED_MAX else []
        elif "skipped" in self._marks:
            self._skipped += 1
        self._case = None

    def report(self) -> JUnitReport:
        return JUnitReport(
            ran=self._cases - self._skipped,
            skipped=self._skipped,
            failed=max(self._failed, self._claimed),
            names=tuple(self._names),
        )


def _count(attributes: Mapping[str, str], name: str) -> int:
    text = attributes.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < NAME_CHARS_MAX else 0
