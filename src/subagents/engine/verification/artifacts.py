"""Checks of one file against what the contract says of it; blocking, never on the event loop.

The file was made by an untrusted worker, the contract by an untrusted caller. So every read has a
limit, nothing but a regular file is ever read, and what can burn time without letting go of the
interpreter (JSON Schema: a few hundred bytes of nested ``allOf`` take hours; big JSON) is meant
for its own process, which can be killed: ``main`` is that process.
"""

import errno
import itertools
import json
import math
import os
import resource
import signal
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NoReturn

import msgspec
import re2  # type: ignore[import-untyped]  # it brings no types

from subagents.domain.run.baseline import Fingerprint
from subagents.domain.run.outcome import Check, CheckType
from subagents.domain.run.spec import Artifact
from subagents.engine.verification.contract_files import (
    NOT_THE_CHECKERS_FAULT,
    never,
    open_regular,
    read_bounded,
    read_pieces,
    sha256,
    unchanged,
)
from subagents.engine.verification.work_root import FileFault, WorkRoot
from subagents.errors import ContractError
from subagents.text import counted, listed, one_line

if TYPE_CHECKING:
    import jsonschema_rs

JUNIT_BYTES_MAX: Final = 256 * 1024 * 1024
"""Read in pieces, of which none is kept: two to five seconds."""
JSON_BYTES_MAX: Final = 64 * 1024 * 1024
"""Decoded it takes up to 25 times as much memory."""
JSON_BYTES_IN_PROCESS_MAX: Final = 1024 * 1024
"""Decoding holds the interpreter: about 8 ms per MiB during which the daemon answers no one."""
CHECKER_MEMORY_BYTES_MAX: Final = 4 * 1024 * 1024 * 1024
REGEX_BYTES_MAX: Final = 1024 * 1024
"""Compiled size of one ``pattern``; the linear engine refuses what would be larger."""
SCHEMA_ERRORS_SHOWN: Final = 3
SCHEMA_ERRORS_BYTES_MAX: Final = 4 * 1024 * 1024
"""The largest file in which more than the first error is looked for: the library collects all
(1 M errors: 10 s)."""
MASK: Final = "the value"
"""Stands for what is in the file wherever the library would quote it."""
PROBLEM_CHARS_MAX: Final = 300
WHOLE_DIGITS_MAX: Final = 4_000
"""Digits of a number that is read exactly; Python takes 300 more, and time for each beyond."""
SHOWN_MAX: Final = 3


def check_artifact(
    artifact: Artifact,
    root: WorkRoot,
    *,
    before: Fingerprint | None = None,
    abandoned: Callable[[], bool] = never,
) -> Check:
    """Look at one file, in this process.

    Args:
        artifact: Validated by ``domain.rules.contract``.
        root: Where it is.
        before: What it was before the work, when that does not count; None = it was not there,
            or it may stay as it was.
        abandoned: Asked between reads; True ends the check early.

    Returns:
        Failed with every fault found, when the file is missing, unreadable or not as asked;
        ``could_not_check`` when the checker itself failed (I/O error, out of memory).

    Raises:
        Abandoned: ``abandoned`` said so.
    """
    findings = _Findings()
    could_not_check = False
    try:
        with open_regular(artifact.path, root) as file:
            if before is not None and (old := unchanged(file, before, abandoned)):
                findings.problems.append(old)
            if artifact.newer_than is not None:
                findings.problems += _age_problems(file, artifact.newer_than, root)
            _examine(file, artifact, findings, abandoned)
    except FileFault as fault:
        findings.problems.append(str(fault))
    except OSError as error:
        what = error.strerror or str(error)
        if error.errno == errno.ENOENT:
            what = "does not exist"
        elif error.errno in NOT_THE_CHECKERS_FAULT:
            what = f"cannot be read: {what}"
        else:
            could_not_check = not findings.problems
            what = f"could not be checked: {what}"
        findings.problems.append(what)
    except MemoryError:
        could_not_check = not findings.problems
        findings.problems.append("could not be checked: out of memory")
    problems = "; ".join(findings.problems)
    return Check(
        type=CheckType.ARTIFACT,
        target=artifact.path,
        passed=not problems,
        reason=f"File {artifact.path} {problems}" if problems else None,
        evidence=", ".join(findings.evidence) or None,
        could_not_check=could_not_check,
    )


def needs_own_process(artifact: Artifact, root: WorkRoot) -> bool:
    """Whether ``check_artifact`` may hold the interpreter for long: then ask ``main`` instead."""
    if artifact.schema is not None:
        return True
    if not (artifact.json or artifact.junit or artifact.regex is not None):
        return False
    try:
        with open_regular(artifact.path, root) as file:
            size = os.fstat(file.fileno()).st_size
    except (OSError, FileFault):
        return False  # the check itself says it better
    return (
        JSON_BYTES_IN_PROCESS_MAX < size <= (JUNIT_BYTES_MAX if artifact.junit else JSON_BYTES_MAX)
    )


def compile_regex(pattern: str) -> Any:
    """Make a pattern that is searched in linear time; ``^`` and ``$`` stand for ends of lines.

    Raises:
        ContractError: The message completes the name of the field.
    """
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(f"(?m){pattern}", options)
    except re2.error as error:
        said = bytes(error.args[0]).decode("utf-8", "replace")
        raise ContractError(
            f"is not a pattern of RE2: {one_line(said, PROBLEM_CHARS_MAX)}"
        ) from error
    except UnicodeEncodeError as error:
        raise ContractError("must be valid UTF-8") from error


class _Findings:
    def __init__(self) -> None:
        self.problems: list[str] = []
        self.evidence: list[str] = []


def _examine(
    file: BinaryIO, artifact: Artifact, findings: _Findings, abandoned: Callable[[], bool]
) -> None:
    size = os.fstat(file.fileno()).st_size
    findings.evidence.append(f"{size} bytes")
    least = artifact.min_bytes
    if least is not None and size < least:
        state = "was empty" if size == 0 else "is too small"
        findings.problems.append(f"{state} ({size} bytes, minimum {least} bytes required)")
    if artifact.sha256 is not None:
        wanted = artifact.sha256.lower()
        # Never the digest that it has: whoever gave the contract need not be allowed to read it.
        if sha256(file, abandoned) == wanted:
            findings.evidence.append(f"sha256 {wanted[:12]}…")
        else:
            findings.problems.append(f"has another SHA-256 than {wanted}")
    if artifact.regex is not None:
        findings.problems += _regex_problems(file, size, artifact.regex, abandoned)
    if artifact.junit:
        _examine_junit(file, size, artifact, findings, abandoned)
    if not artifact.is_json:
        return
    try:
        document = _decode(file, size, abandoned)
    except FileFault as fault:
        findings.problems.append(str(fault))
        return
    if isinstance(document, list):
        findings.evidence.append(f"{len(document)} items")
    findings.problems += _shape_problems(document, artifact)
    if artifact.schema is not None:
        findings.problems += _schema_problems(document, artifact.schema, size=size)


def _age_problems(file: BinaryIO, other: str, root: WorkRoot) -> list[str]:
    try:
        with open_regular(other, root) as older:
            than_ns = os.fstat(older.fileno()).st_mtime_ns
    except (OSError, FileFault) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        return [f"cannot be compared with {other}: {why}"]
    is_newer = os.fstat(file.fileno()).st_mtime_ns > than_ns
    return [] if is_newer else [f"is not newer than {other}"]


def _regex_problems(
    file: BinaryIO, size: int, regex: str, abandoned: Callable[[], bool]
) -> list[str]:
    try:
        text = read_bounded(file, size, JSON_BYTES_MAX, "text", abandoned)
        if compile_regex(regex).search(text.decode(errors="replace")):
            return []
    except FileFault as fault:
        return [str(fault)]
    except ContractError as error:
        return [f"has a pattern that {error.message}"]
    return [f"has no match for /{one_line(regex, PROBLEM_CHARS_MAX)}/"]


def _examine_junit(
    file: BinaryIO,
    size: int,
    artifact: Artifact,
    findings: _Findings,
    abandoned: Callable[[], bool],
) -> None:
    from subagents.engine.verification.junit_reports import read_junit  # noqa: PLC0415 - seldom needed

    try:
        report = read_junit(read_pieces(file, size, JUNIT_BYTES_MAX, "JUnit XML", abandoned))
    except FileFault as fault:
        findings.problems.append(str(fault))
        return
    skipped = f", {report.skipped} skipped" if report.skipped else ""
    findings.evidence.append(f"{counted(report.ran, 'test')}{skipped}, {report.failed} failed")
    if report.failed:
        named = f": {listed(list(report.names), SHOWN_MAX, report.failed)}" if report.names else ""
        findings.problems.append(f"has {counted(report.failed, 'failed test')}{named}")
    least = 1 if artifact.min_tests is None else artifact.min_tests
    if report.ran < least:
        notes = f" ({'; '.join(report.notes)})" if report.notes else ""
        findings.problems.append(
            f"has {counted(report.ran, 'test')} that ran, minimum {least} required{notes}"
        )


def _decode(file: BinaryIO, size: int, abandoned: Callable[[], bool]) -> object:
    data = read_bounded(file, size, JSON_BYTES_MAX, "JSON", abandoned)
    if not data.strip():
        raise FileFault("is not valid JSON: it is empty")
    try:
        return msgspec.json.decode(data)
    except (UnicodeDecodeError, msgspec.DecodeError) as error:
        if "out of range" in str(error):
            return _with_any_number(data)
        # The decoder says the same of another text that is none, from its version 0.23 on.
        why = "it is not UTF-8" if "utf-8" in str(error).lower() else str(error)
        raise FileFault(f"is not valid JSON: {why}") from error
    except RecursionError as error:
        raise FileFault("is nested too deeply to be checked as JSON") from error


def _with_any_number(data: bytes | bytearray) -> object:
    """JSON with numbers of any size (RFC 8259, section 6): the largest of ours stands in."""

    def number(digits: str) -> float:
        largest = math.copysign(sys.float_info.max, float(digits))
        return min(float(digits), largest) if largest > 0 else max(float(digits), largest)

    def whole(digits: str) -> float:
        return int(digits) if len(digits) <= WHOLE_DIGITS_MAX else number(digits)

    def refuse(name: str) -> NoReturn:
        raise ValueError(f"{name} is no JSON")

    try:
        found: object = json.loads(data, parse_float=number, parse_int=whole, parse_constant=refuse)
    except ValueError as error:
        raise FileFault(f"is not valid JSON: {error}") from error
    except RecursionError as error:
        raise FileFault("is nested too deeply to be checked as JSON") from error
    return found


def _shape_problems(document: object, artifact: Artifact) -> list[str]:
    problems: list[str] = []
    if artifact.min_items is not None:
        if not isinstance(document, list):
            problems.append(f"has {_kind(document)} at the top level, not an array")
        elif len(document) < artifact.min_items:
            problems.append(f"has {len(document)} items, minimum {artifact.min_items} required")
    if artifact.required_keys:
        problems += _missing_keys(document, artifact.required_keys)
    return problems


def _missing_keys(document: object, required: tuple[str, ...]) -> list[str]:
    """Name the first few items that lack keys; the rest is counted."""
    if isinstance(document, dict):
        lacking = _lacking(document, required)
        return [f"lacks {lacking} in the top-level object"] if lacking else []
    if not isinstance(document, list):
        kind = _kind(document)
        return [f"has {kind} at the top level, not an array or object with the required keys"]
    faults = (
        (index, lacking if isinstance(item, dict) else f"everything: it is {_kind(item)}")
        for index, item in enumerate(document)
        if (lacking := _lacking(item, required))
    )
    shown = [
        f"lacks {lacking} in item {index}" for index, lacking in itertools.islice(faults, SHOWN_MAX)
    ]
    rest = sum(1 for _ in faults)
    return [*shown, f"lacks required keys in {rest} more items"] if rest else shown


def _lacking(item: object, required: tuple[str, ...]) -> str:
    missing = [key for key in required if not (isinstance(item, dict) and key in item)]
    return listed([repr(key) for key in missing], 10)


def _kind(document: object) -> str:
    names = {dict: "an object", list: "an array", str: "a string", bool: "a boolean"}
    return "null" if document is None else names.get(type(document), "a number")


def compile_schema(
    schema: dict[str, object] | bool,  # noqa: FBT001
    *,
    mask: str | None = None,
) -> "jsonschema_rs.Validator":
    """Make a validator that fetches nothing and whose patterns take linear time.

    Args:
        schema: As in the contract.
        mask: Stands for values wherever a message would quote one.

    Raises:
        ContractError: The schema is malformed or needs another document; the message completes
            the name of the field.
    """
    import jsonschema_rs  # noqa: PLC0415  3 MB that only a schema needs

    try:
        return jsonschema_rs.validator_for(
            schema,
            retriever=_refuse_to_fetch,
            mask=mask,
            pattern_options=jsonschema_rs.RegexOptions(
                size_limit=REGEX_BYTES_MAX, dfa_size_limit=REGEX_BYTES_MAX
            ),
        )
    except jsonschema_rs.ValidationError as error:
        if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.Referencing):
            raise ContractError(
                f"has a $ref that leads nowhere in it, and no other document is fetched:"
                f" {one_line(error.message, PROBLEM_CHARS_MAX)}"
            ) from error
        raise ContractError(
            f"is not a valid JSON Schema at {_pointer(error.instance_path)}:"
            f" {one_line(error.message, PROBLEM_CHARS_MAX)}"
        ) from error
    except ValueError as error:  # e.g. "Recursion limit reached"
        raise ContractError(f"cannot be used: {one_line(str(error), PROBLEM_CHARS_MAX)}") from error


def _refuse_to_fetch(uri: str) -> NoReturn:
    raise PermissionError(f"fetching {uri} is not allowed")


def _schema_problems(
    document: object,
    schema: dict[str, object] | bool,  # noqa: FBT001
    *,
    size: int,
) -> list[str]:
    try:
        # It was compiled at the spawn, too, which reported its own faults unmasked.
        validator = compile_schema(schema, mask=MASK)
    except ContractError as error:
        return [f"has a schema that {error}"]
    import jsonschema_rs  # noqa: PLC0415  as above

    try:
        if validator.is_valid(document):
            return []
        if size > SCHEMA_ERRORS_BYTES_MAX:
            validator.validate(document)
        errors = list(itertools.islice(validator.iter_errors(document), SCHEMA_ERRORS_SHOWN))
    except jsonschema_rs.ValidationError as error:
        errors = [error]
    except ValueError as error:  # the instance is beyond what the library takes
        return [f"cannot be checked by its schema: {one_line(str(error), PROBLEM_CHARS_MAX)}"]
    return [
        f"does not match its schema at {_pointer(error.instance_path)}:"
        f" {one_line(error.message, PROBLEM_CHARS_MAX)}"
        for error in errors
    ]


def _pointer(path: Sequence[str | int]) -> str:
    """JSON Pointer (RFC 6901); ``/`` alone reads better than nothing for the whole document."""
    steps = (str(step).replace("~", "~0").replace("/", "~1") for step in path)
    return one_line("/" + "/".join(steps), PROBLEM_CHARS_MAX)


class Question(msgspec.Struct, frozen=True):
    """What the checker's own process is asked on standard input; it answers with a ``Check``."""

    artifact: Artifact
    root: WorkRoot
    limit_s: int
    """1 or more; then the process ends itself, should the daemon be gone that would kill it."""
    before: Fingerprint | None = None


def main() -> None:
    """Answer one ``Question``: the program that ``engine.verification`` starts and may kill."""
    question = msgspec.json.decode(sys.stdin.buffer.read(), type=Question)
    # The default action of SIGALRM ends the process whatever library it is in.
    signal.alarm(question.limit_s)
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    if hard == resource.RLIM_INFINITY or hard > CHECKER_MEMORY_BYTES_MAX:
        resource.setrlimit(resource.RLIMIT_AS, (CHECKER_MEMORY_BYTES_MAX, hard))
    check = check_artifact(question.artifact, question.root, before=question.before)
    sys.stdout.buffer.write(msgspec.json.encode(check))
