"""What a verification contract may ask for.

A contract that could never be checked, or that checks nothing, is refused at the spawn, and not
when the work is paid for. Compiling a JSON Schema needs a library and is done by
``engine.verification.check_schemas``.
"""

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from subagents.domain.rules.parameter_checks import check_struct
from subagents.domain.rules.path_patterns import pattern_of
from subagents.domain.rules.tool_kinds import HARMLESS, kind_of
from subagents.domain.run.access import Access, AccessLevel
from subagents.domain.run.baseline import Baseline
from subagents.domain.run.spec import (
    ARTIFACTS_MAX,
    COMMANDS_MAX,
    PATH_BYTES_MAX,
    PATHS_MAX,
    REQUIRED_KEYS_MAX,
    VERIFICATION_TIMEOUT_MS_MAX,
    Artifact,
    Checks,
    Contract,
)
from subagents.errors import ContractError
from subagents.text import listed, one_line

JUDGES_OWN: Final = "verification.judge.verification"
CRITERIA_BYTES_MAX: Final = 16 * 1024
COMMAND_BYTES_MAX: Final = 64 * 1024
"""Half of what Linux takes as one argument, so ``/bin/sh -c`` can always be started."""
SCHEMA_BYTES_MAX: Final = 256 * 1024

REGEX_TEXT_BYTES_MAX: Final = 4096
OLD_FILES_NAMED: Final = 5
_SHA256: Final = re.compile(r"[0-9a-fA-F]{64}\Z")


def validate(contract: Contract, *, commands_allowed: bool, within: str | None = None) -> None:
    """Refuse a contract that checks nothing or that could never be checked.

    Args:
        contract: As given in the spawn.
        commands_allowed: The operator gave the contract, or allows everybody commands by
            ``verification.dangerously_allow_validation_commands``.
        within: The directory that its paths may not leave; None = they may name any file, which
            is for those who could read it themselves.

    Raises:
        ContractError: Names the first wrong field, e.g. ``verification.artifacts[0].minItems needs
            json: true``; nothing was stored.
    """
    _validate_checks("verification", contract, commands_allowed=commands_allowed, within=within)
    judge = contract.judge
    if judge is None:
        return
    field = "verification.judge"
    check_struct(judge, field)
    _validate_text(f"{field}.criteria", judge.criteria, bytes_max=CRITERIA_BYTES_MAX)
    if judge.budget is not None:
        check_struct(judge.budget, f"{field}.budget")
    if judge.verification is not None:
        own = judge.verification
        _validate_checks(JUDGES_OWN, own, commands_allowed=commands_allowed, within=within)


def _validate_checks(
    field: str, contract: Checks, *, commands_allowed: bool, within: str | None
) -> None:
    if not contract.has_checks:
        raise ContractError(
            f"{field} has nothing to check",
            hint="give it artifacts, mustChange, commands, judge or requireCompletionReport: true",
        )
    if not 1 <= contract.verification_timeout_ms <= VERIFICATION_TIMEOUT_MS_MAX:
        raise ContractError(
            f"{field}.verificationTimeoutMs must be 1 to {VERIFICATION_TIMEOUT_MS_MAX},"
            f" not {contract.verification_timeout_ms}"
        )
    _at_most(f"{field}.artifacts", len(contract.artifacts), ARTIFACTS_MAX)
    for index, artifact in enumerate(contract.artifacts):
        _validate_artifact(f"{field}.artifacts[{index}]", artifact)
        _validate_place(f"{field}.artifacts[{index}]", artifact, within)
    for name, patterns in (
        ("mustChange", contract.must_change),
        ("mustNotChange", contract.must_not_change),
    ):
        _at_most(f"{field}.{name}", len(patterns), PATHS_MAX)
        for index, text in enumerate(patterns):
            place = f"{field}.{name}[{index}]"
            _validate_text(place, text, bytes_max=PATH_BYTES_MAX)
            pattern_of(text, field=place)
    _validate_protected(field, contract)
    if contract.commands and not commands_allowed:
        raise ContractError(
            f"{field}.commands is for the operator; for agents it needs"
            " verification.dangerously_allow_validation_commands = true in the configuration",
            hint="check files instead, or let the operator give the command",
        )
    _at_most(f"{field}.commands", len(contract.commands), COMMANDS_MAX)
    for index, command in enumerate(contract.commands):
        _validate_text(f"{field}.commands[{index}]", command, bytes_max=COMMAND_BYTES_MAX)


def _validate_protected(field: str, contract: Checks) -> None:
    """Refuse what asks for a change of the very files that must not change."""
    protected = [
        pattern_of(text, field=f"{field}.mustNotChange", whole_directories=True)
        for text in contract.must_not_change
    ]
    for name, path in _changes(contract):
        # What must not change is below the working directory; what lies outside cannot be meant.
        if path.startswith("/") or ".." in path.split("/"):
            continue
        # All that it can match is below its base, and a directory stands for all below it.
        base = pattern_of(path, field=f"{field}.{name}").base
        for index, each in enumerate(protected):
            if each.matches(base) or each.text == path:
                raise ContractError(
                    f"{field}.{name} asks for a change of {one_line(path)}, which"
                    f" {field}.mustNotChange[{index}] ({one_line(each.text)}) forbids",
                    hint="leave one of them out, or name what must not change more narrowly",
                )


def _changes(contract: Checks) -> Iterator[tuple[str, str]]:
    """What only a change of files can meet: its name in the contract, and its path."""
    # A glob that no file has to match asks for none.
    for index, artifact in enumerate(contract.artifacts):
        if contract.is_fresh(artifact) and not (artifact.is_glob and not artifact.min_files):
            yield f"artifacts[{index}]", artifact.path
    for index, text in enumerate(contract.must_change):
        yield f"mustChange[{index}]", text


def check_can_be_met(
    field: str,
    contract: Checks,
    access: Access | None,
    tools: tuple[str, ...] | None,
    *,
    way_out: str,
) -> None:
    """Refuse a contract that asks a worker for files that it cannot write.

    Args:
        field: The contract's name, for the message.
        contract: A valid one.
        access: The worker's; None = everything.
        tools: The only ones that it has; None = all.
        way_out: How to get a worker that may write, where it may only read.

    Raises:
        ContractError: Names the first check that cannot be met, why, and what to add.
    """
    found = next(_changes(contract), None)
    if found is None:
        return
    if access is not None and access.level is AccessLevel.READ:
        because = access.narrowed or 'access "read"'
        why = f"may only read ({because})"
    elif tools is not None and HARMLESS.issuperset(map(kind_of, tools)):
        why = f"has no tool that writes ({', '.join(tools) or 'it has none at all'})"
        way_out = "let it have a tool that writes (toolsAllow)"
    else:
        return
    name, path = found
    do, less = "changed", "leave it out"
    if name.startswith("artifacts"):
        do, less = "written", "accept the file as it is: --verify-existing (fresh: false)"
    raise ContractError(
        f"{field}.{name}: {one_line(path)} must be {do} by the run, whose worker {why}",
        hint=f"{way_out}; or {less}",
        details={"field": f"{field}.{name}"},
    )


def _validate_artifact(field: str, artifact: Artifact) -> None:
    _validate_text(f"{field}.path", artifact.path, bytes_max=PATH_BYTES_MAX)
    for name, value in (
        ("minItems", artifact.min_items),
        ("minBytes", artifact.min_bytes),
        ("minTests", artifact.min_tests),
        ("minFiles", artifact.min_files),
        ("maxFiles", artifact.max_files),
    ):
        if value is not None and value < 0:
            raise ContractError(f"{field}.{name} must be 0 or more, not {value}")
    for name, needed, is_there in (
        ("minItems", "json", artifact.is_json or artifact.min_items is None),
        ("requiredKeys", "json", artifact.is_json or not artifact.required_keys),
        ("minTests", "junit", artifact.junit or artifact.min_tests is None),
    ):
        if not is_there:
            raise ContractError(f"{field}.{name} needs {needed}: true")
    if artifact.junit and artifact.is_json:
        raise ContractError(f"{field} cannot be both junit and json")
    if artifact.is_glob:
        pattern_of(artifact.path, field=f"{field}.path")
        if artifact.max_files is not None and artifact.max_files < (artifact.min_files or 0):
            raise ContractError(f"{field}.maxFiles must not be less than minFiles")
    _validate_texts(field, artifact)
    _at_most(f"{field}.requiredKeys", len(artifact.required_keys), REQUIRED_KEYS_MAX)
    if artifact.sha256 is not None and not _SHA256.match(artifact.sha256):
        raise ContractError(f"{field}.sha256 must be 64 hexadecimal digits")
    if artifact.schema is not None:
        size = len(msgspec.json.encode(artifact.schema))
        if size > SCHEMA_BYTES_MAX:
            raise ContractError(
                f"{field}.schema must be at most {SCHEMA_BYTES_MAX} bytes, not {size}"
            )


def _validate_texts(field: str, artifact: Artifact) -> None:
    for name, text, bytes_max in (
        ("regex", artifact.regex, REGEX_TEXT_BYTES_MAX),
        ("newerThan", artifact.newer_than, PATH_BYTES_MAX),
    ):
        if text is not None:
            _validate_text(f"{field}.{name}", text, bytes_max=bytes_max)


def _validate_place(field: str, artifact: Artifact, within: str | None) -> None:
    """What a check says of a file outside would tell an agent what is in it."""
    if within is None:
        return
    for name, path in (("path", artifact.path), ("newerThan", artifact.newer_than)):
        if path is not None and path.startswith("/") and not path.startswith(f"{within}/"):
            raise ContractError(
                f"{field}.{name} must be below the working directory {within}",
                hint="name it relative to that; only the operator's contracts name files elsewhere",
            )


def _validate_text(field: str, text: str, *, bytes_max: int) -> None:
    if not text.strip():
        raise ContractError(f"{field} must not be empty")
    if "\0" in text:
        raise ContractError(f"{field} must not contain a NUL byte")
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise ContractError(f"{field} must be valid UTF-8") from error
    if size > bytes_max:
        raise ContractError(f"{field} must be at most {bytes_max} bytes, not {size}")


def old_files(contract: Contract, baseline: Baseline) -> tuple[str, ...]:
    """A warning when files that must be new are there before the work; none is no warning."""
    fresh = [each for each in contract.artifacts if contract.is_fresh(each)]
    named = {each.path for each in fresh if not each.is_glob}
    patterns = [pattern_of(each.path, field="path") for each in fresh if each.is_glob]
    old = [
        each.path
        for each in baseline.files
        if each.path in named or any(pattern.matches(each.path) for pattern in patterns)
    ]
    if not old:
        return ()
    names = listed([one_line(each) for each in old], OLD_FILES_NAMED)
    is_one = len(old) == 1
    are, count, them = ("is", "counts", "it") if is_one else ("are", "count", "them")
    text = f"{names} {are} there already and {count} only if the run changes {them}"
    return (f"{text}; to accept {them} unchanged: --verify-existing (fresh: false)",)


def _at_most(field: str, count: int, most: int) -> None:
    if count > most:
        raise ContractError(f"{field} must have at most {most} entries, not {count}")
