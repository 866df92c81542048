"""Reads JUnit XML as pytest, Surefire and their kin write it, of any malice, at a bounded cost.

There is no one schema: each program has its own idea of what a count covers and where it says that
a test did not run. So both are read, what a report says of itself and what it lists, and where
they differ the stricter holds: a test counts as run only if nothing says otherwise, and one failure
that is named anywhere is a failure.

No document type is accepted, so no entity can be declared: neither the billion laughs nor a file
or an address that someone else chose can be read through it.
"""

import codecs
import re
from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from typing import Final, NamedTuple
from xml.parsers import expat

from subagents.engine.verification.work_root import FileFault
from subagents.text import counted, one_line

UNKNOWN: Final = "\ufffd"
ENCODING_CHARS_MAX: Final = 40
_DECLARED: Final = re.compile(
    rb"<\?xml[^>]{1,100}?\bencoding\s{0,9}=\s{0,9}[\"']([A-Za-z0-9._:-]{1,80})[\"']"
)
_NO_CHAR: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_REFERENCE: Final = re.compile(r"&#(?:x([0-9A-Fa-f]{1,8})|([0-9]{1,10}));")
_REFERENCE_CHARS_MAX: Final = 14
_BY_BEGINNING: Final = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
    (b"<\0", "utf-16-le"),
    (b"\0<", "utf-16-be"),
)


def decoded(chunks: Iterable[bytes | bytearray]) -> Iterator[str]:
    """The text of a document in pieces, without what no XML may hold.

    What programs print is put into reports as it is: colours, backspaces, bytes of no encoding. A
    strict parser refuses the whole report for one such letter of a log. They stand for nothing that
    a check asks for, so each becomes U+FFFD; no markup can be made or hidden so, since every sign
    that it is made of stays what it is.

    Args:
        chunks: Its bytes; the first piece holds the whole declaration.

    Raises:
        FileFault: It declares an encoding that is not known.
    """
    decoder: codecs.IncrementalDecoder | None = None
    kept = ""
    for chunk in chunks:
        if decoder is None:
            decoder = codecs.getincrementaldecoder(_encoding(bytes(chunk[:256])))("replace")
        text = _NO_CHAR.sub(UNKNOWN, kept + decoder.decode(bytes(chunk)))
        # A reference may go on in the next piece.
        begun = text.rfind("&", max(len(text) - _REFERENCE_CHARS_MAX, 0))
        end = len(text) if begun < 0 or ";" in text[begun:] else begun
        kept = text[end:]
        yield _REFERENCE.sub(_allowed, text[:end])
    if decoder is not None:
        yield kept + _NO_CHAR.sub(UNKNOWN, decoder.decode(b"", final=True))


def _encoding(beginning: bytes) -> str:
    for mark, name in _BY_BEGINNING:
        if beginning.startswith(mark):
            return name
    declared = _DECLARED.match(beginning)
    name = "utf-8" if declared is None else declared[1].decode()
    try:
        codecs.lookup(name)
        # Programs that write a string of theirs to a file declare what the string was in memory.
        return name if b"<?xml".decode(name, "replace") == "<?xml" else "utf-8"
    except (LookupError, ValueError) as error:
        shown = one_line(name, ENCODING_CHARS_MAX)
        raise FileFault(f"is not valid XML: its encoding {shown} is not known") from error


def _allowed(reference: re.Match[str]) -> str:
    code = int(reference[1], 16) if reference[1] else int(reference[2])
    if code > 0x10FFFF or _NO_CHAR.match(chr(code)):
        return UNKNOWN
    return reference[0]


TESTS_MAX: Final = 1_000_000
"""Tests that are told apart."""
DEPTH_MAX: Final = 200
TOKEN_BYTES_MAX: Final = 16 * 1024 * 1024
"""The longest tag: it is held in memory whole, and looked through again with each piece."""
NAMED_MAX: Final = 3
NAME_CHARS_MAX: Final = 120
_FEED_CHARS: Final = 256 * 1024
_SUITES: Final = frozenset({"testsuites", "testsuite"})


class JUnitReport(NamedTuple):
    """What a report says of its tests."""

    ran: int
    """Different tests; those that were skipped, disabled or not reached are not counted."""
    skipped: int
    failed: int
    """Failures and errors: those listed or those counted, whichever is more."""
    names: tuple[str, ...] = ()
    """The names of the first tests that failed."""
    notes: tuple[str, ...] = ()
    """Why fewer tests count as run, or more as failed, than a glance at the report shows."""


def read_junit(chunks: Iterable[bytes | bytearray]) -> JUnitReport:
    """Count the tests in a report.

    Args:
        chunks: The file in pieces of any length; what they raise goes through.

    Raises:
        FileFault: It is no JUnit XML, declares a document type, or holds a count that is no number.
    """
    reader = _Reader()
    parser = expat.ParserCreate(encoding="utf-8", namespace_separator=" ")
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.StartDoctypeDeclHandler = _refuse_doctype
    fed = 0
    try:
        for text in decoded(chunks):
            for begin in range(0, len(text), _FEED_CHARS):
                piece = text[begin : begin + _FEED_CHARS].encode()
                parser.Parse(piece, False)
                fed += len(piece)
                # What was fed and not parsed yet is one token that has not ended.
                if fed - parser.CurrentByteIndex > TOKEN_BYTES_MAX:
                    raise FileFault(f"has a tag or comment of more than {TOKEN_BYTES_MAX} bytes")
        parser.Parse(b"", True)
    except (expat.ExpatError, ValueError) as error:
        raise FileFault(f"is not valid XML: {one_line(str(error), NAME_CHARS_MAX)}") from error
    return reader.report()


def _refuse_doctype(*_declared: object) -> None:
    raise FileFault("declares a document type, which no JUnit XML needs and may be used to attack")


# -- what single words and numbers mean -----------------------------------------------------------


class _Verdict(IntEnum):
    """In the order of strictness."""

    RAN = 0
    UNKNOWN = 1
    """A word that is not known here: no evidence that the test ran."""
    NOT_RUN = 2
    FAILED = 3


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FAILURES: Final = _words("failure error failed rerunfailure rerunerror")
"""Elements of a test that failed."""
_TRIES: Final = _words("flakyfailure flakyerror rerunfailure rerunerror")
"""Elements for a try other than the last or first, which Surefire counts as failures of the suite;
the flaky ones are of a test that passed in the end."""
_SKIPS: Final = _words("skipped skip disabled ignored notrun pending untested")
_NOT_STARTED: Final = ("Unable to find executable", "Required Files Missing", "Fixture dependency")
"""Reasons of ``skipped`` for which ctest itself fails."""
_MAY_FAIL: Final = "todo"
"""Type of ``skipped``: with Node.js a failure next to it is an expected one."""
_IF_YES: Final = dict.fromkeys(("skipped", "disabled", "ignored", "notrun"), _Verdict.NOT_RUN)
"""Attributes, by what they say when they are true."""
_IF_NO: Final = {
    "executed": _Verdict.NOT_RUN,
    "success": _Verdict.FAILED,
    "passed": _Verdict.FAILED,
}
_VERDICTS: Final = ("status", "result", "outcome", "verdict")
"""Attributes that hold one of these words, whatever their case and separators."""
_SAYS: Final = {
    _Verdict.RAN: _words(
        """
        run ran completed complete passed pass passing success succeeded successful ok okay executed
        finished done fixed flaky expected true xfail xfailed expectedfailure warning
        """
    ),
    _Verdict.NOT_RUN: _words(
        """
        notrun norun skipped skip disabled suppressed ignored ignore pending untested todo
        notexecuted notreached notrunnable inconclusive inactive unexecuted notstarted deselected
        assumptionviolated none unknown dryrun queued planned
        """
    ),
    _Verdict.FAILED: _words(
        """
        failed fail failure failures failing error errors errored broken regression timeout timedout
        aborted abort interrupted crashed crash killed cancelled canceled undefined ambiguous xpass
        xpassed unexpectedsuccess unexpectedpass unexpected notfound invalid false bad nok
        unsuccessful incomplete
        """
    ),
}
_BY_WORD: Final = {word: verdict for verdict, words in _SAYS.items() for word in words}
_SKIPPED: Final = ("skipped", "skip", "skips", "ignored", "pending")
"""Counts: different programs' names of one thing."""
_DISABLED: Final = ("disabled", "notrun", "not-run", "not_run")
"""Counts of what is not among those that were skipped."""
_NO: Final = frozenset({"false", "no"})
_YES: Final = frozenset({"true", "yes"})
_NOTHING: Final = _NO | {"", "none", "null"}
_COUNT: Final = re.compile(r"([+-]?)(\d{1,18})(?:\.(\d{1,18}))?", re.ASCII)


def _word(text: str) -> str:
    return re.sub("[^a-z]", "", text.lower())


def _failures(attributes: Mapping[str, str]) -> int:
    counted_apart = _count(attributes, "failures"), _count(attributes, "errors")
    return max(sum(map(abs, counted_apart)), abs(_count(attributes, "failed")))


def _skips(attributes: Mapping[str, str]) -> int:
    return sum(
        max(0, *(_count(attributes, name) for name in synonyms))
        for synonyms in (_SKIPPED, _DISABLED)
    )


def _count(attributes: Mapping[str, str], name: str) -> int:
    """What an attribute counts; 0 = it is not there. Mocha's ``skipped`` can be -1.

    Raises:
        FileFault: It is there and is no number.
    """
    text = attributes.get(name, "").strip()
    if text.lower() in _NOTHING:
        return 0
    if text.lower() in _YES:
        return 1
    found = _COUNT.fullmatch(text)
    if found is None:
        raise FileFault(f'says {name}="{one_line(text, NAME_CHARS_MAX)}", which is no count')
    number = int(found[2]) + bool(found[3] and int(found[3]))
    return -number if found[1] == "-" else number


# -- the tree -------------------------------------------------------------------------------------


class _Suite:
    """A ``testsuite`` or ``testsuites`` whose end has not come yet."""

    def __init__(self, attributes: Mapping[str, str], *, is_whole: bool) -> None:
        self.name = attributes.get("name", "")
        self.key = f"{self.name}\0{attributes.get('hostname', '')}"
        """Browsers and devices are told apart by the host."""
        self.is_whole = is_whole
        """It counts all that is in it, however deep; of suites of suites some count one level."""
        self.says = _verdict_of(attributes)
        self.counts_tests = bool(attributes.get("tests", "").strip())
        self.tests = _count(attributes, "tests")
        self.failures = _failures(attributes)
        self.skips = _skips(attributes)
        self.ran = self.skipped = self.failed = self.tries = 0
        self.has_suites = False

    def close(self) -> None:
        """Let the stricter hold of what it says and what is in it."""
        within = self.ran + self.skipped
        tests = self.tests if self.counts_tests else within
        left = max(tests - self.skips, 0)
        is_of_all = self.is_whole or not self.has_suites or tests >= within or left == 0 < tests
        # Some do not count those that were skipped among the tests.
        is_agreed = (self.tests, self.skips) == (self.ran, self.skipped)
        self.ran = min(self.ran, left) if is_of_all and not is_agreed else self.ran
        self.skipped = max(self.skipped, self.skips)
        told = self.failures - self.tries
        self.failed = max(self.failed, told, int(self.says is _Verdict.FAILED))
        if self.says is _Verdict.NOT_RUN:
            self.skipped, self.ran = max(self.skipped, within), 0


class _Case:
    """A ``testcase`` whose end has not come yet."""

    def __init__(self, attributes: Mapping[str, str], inside: tuple[str, ...]) -> None:
        named = (attributes.get("classname", ""), attributes.get("name", ""))
        self.name = one_line(".".join(filter(None, named)), NAME_CHARS_MAX) or "unnamed"
        self.key = hash((*inside, attributes.get("file", ""), *named))
        self.may_fail = False
        self.verdict = _verdict_of(attributes)
        if _failures(attributes):
            self.verdict = _Verdict.FAILED
        elif self.verdict is _Verdict.RAN and _skips(attributes):
            self.verdict = _Verdict.NOT_RUN
        said = (attributes[name] for name in _VERDICTS if name in attributes)
        self.odd_word = next((text for text in said if _word(text) not in _BY_WORD), "")


def _verdict_of(attributes: Mapping[str, str]) -> _Verdict:
    """The worst that its attributes say."""
    words = [attributes[name] for name in _VERDICTS if attributes.get(name, "").strip()]
    found = [_BY_WORD.get(_word(text), _Verdict.UNKNOWN) for text in words]
    for name, verdict in _IF_YES.items():
        found += [verdict] if attributes.get(name, "").strip().lower() in _YES else []
    for name, verdict in _IF_NO.items():
        found += [verdict] if attributes.get(name, "").strip().lower() in _NO else []
    return max(found, default=_Verdict.RAN)


class _Reader:
    """Folds the elements of a report into its counts as they come."""

    def __init__(self) -> None:
        self._depth = 0
        self._open: list[_Suite | _Case] = []
        self._whole = _Suite({}, is_whole=False)
        self._seen: set[int] = set()
        self._names: list[str] = []
        self._repeated = self._not_by_counts = 0
        self._odd_words: dict[str, None] = {}

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        own_name = name.rpartition(" ")[2]
        name = own_name.lower()
        if self._depth == 0 and name not in _SUITES:
            shown = one_line(own_name, NAME_CHARS_MAX)
            raise FileFault(
                f"is not JUnit XML: its root is <{shown}>, neither testsuites nor testsuite"
            )
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise FileFault(f"is nested deeper than the {DEPTH_MAX} levels that are read")
        attributes = {key.lower(): text for key, text in attributes.items()}
        if name in _TRIES:
            self._suite().tries += 1
        if name in _SUITES:
            self._open.append(_Suite(attributes, is_whole=name == "testsuites"))
        elif name == "testcase":
            inside = tuple(each.key for each in self._open if isinstance(each, _Suite))
            self._open.append(_Case(attributes, inside))
        elif name in _FAILURES:
            self._mark(_Verdict.FAILED)
        elif name in _SKIPS:
            self._skip(attributes)

    def end(self, name: str) -> None:
        self._depth -= 1
        name = name.rpartition(" ")[2].lower()
        if name not in _SUITES and name != "testcase":
            return
        ended = self._open.pop()
        around = self._suite()
        if isinstance(ended, _Case):
            self._end_case(ended, around)
            return
        listed = ended.ran
        ended.close()
        self._not_by_counts += listed - ended.ran
        around.has_suites = True
        around.ran += ended.ran
        around.skipped += ended.skipped
        around.failed += ended.failed
        around.tries += ended.tries

    def report(self) -> JUnitReport:
        """What was read, of a document that has ended."""
        notes = [f'the status "{word}" is not known' for word in self._odd_words]
        if self._repeated:
            notes.append(f"{counted(self._repeated, 'test')} listed again")
        if self._not_by_counts:
            notes.append(f"{self._not_by_counts} listed did not run by its own counts")
        whole = self._whole
        return JUnitReport(
            ran=whole.ran,
            skipped=whole.skipped,
            failed=whole.failed,
            names=tuple(self._names),
            notes=tuple(notes),
        )

    def _suite(self) -> _Suite:
        """The innermost that is open; behind the end of the root, the whole."""
        return next((x for x in reversed(self._open) if isinstance(x, _Suite)), self._whole)

    def _mark(self, verdict: _Verdict) -> None:
        """Of the test, or of the suite itself: its set-up failed."""
        marked = self._open[-1]
        if isinstance(marked, _Case):
            marked.verdict = max(marked.verdict, verdict)
        elif verdict is _Verdict.FAILED:
            marked.failed += 1
            self._name(one_line(marked.name, NAME_CHARS_MAX) or "unnamed")
        else:
            marked.says = max(marked.says, verdict)

    def _skip(self, attributes: Mapping[str, str]) -> None:
        message = attributes.get("message", "").startswith(_NOT_STARTED)
        self._mark(_Verdict.FAILED if message else _Verdict.NOT_RUN)
        marked = self._open[-1]
        if isinstance(marked, _Case) and attributes.get("type") == _MAY_FAIL:
            marked.may_fail = True

    def _end_case(self, case: _Case, around: _Suite) -> None:
        if case.may_fail or case.verdict in {_Verdict.NOT_RUN, _Verdict.UNKNOWN}:
            around.skipped += 1
            if case.verdict is _Verdict.UNKNOWN and len(self._odd_words) < NAMED_MAX:
                self._odd_words[one_line(case.odd_word, NAME_CHARS_MAX)] = None
            return
        if case.verdict is _Verdict.FAILED:
            around.failed += 1
            self._name(case.name)
        # A test that was run again, or a report pasted into another, proves nothing twice.
        if case.key in self._seen:
            self._repeated += 1
            return
        if len(self._seen) >= TESTS_MAX:
            raise FileFault(f"lists more than the {TESTS_MAX} tests that are counted")
        self._seen.add(case.key)
        around.ran += 1

    def _name(self, name: str) -> None:
        if len(self._names) < NAMED_MAX and name not in self._names:
            self._names.append(name)
