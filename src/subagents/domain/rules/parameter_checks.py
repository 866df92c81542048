"""Whether the values of parameters are within the bounds that their struct declares.

Checked once, where a value comes in from outside, and nowhere behind that. A contract has rules
between its fields and is checked by ``rules.contract``.
"""

import math
import re
import unicodedata
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Final

import msgspec

from subagents.domain.run.parameter import NAME_CHARS_MAX, Parameter, parameters
from subagents.domain.run.spec import (
    PATH_BYTES_MAX,
    TASK_BYTES_MAX,
    Budget,
    Judge,
    OnDependencyFailure,
    OnFailure,
    RunSpec,
)
from subagents.errors import UsageError
from subagents.text import camel

LAST: Final = "last"
"""Selects the newest run, or plan, of whoever asks."""
SELECTING: Final = ("tree:", "phase:", "plan:", "tag:", "dir:", "agent:")
"""What begins like this selects by something else than a label."""
_ID: Final = re.compile("r-[0-9a-hjkmnp-tv-z]{10}")
PRINTABLE_MAX: Final = 10**30
"""Tens of thousands of digits would fill the message, and Python refuses to print them."""


def _bounded(declared: Sequence[Parameter]) -> tuple[Parameter, ...]:
    """Those whose values can be wrong though their types are right."""
    return tuple(
        msgspec.structs.replace(each, inner=_bounded(each.inner))
        for each in declared
        if each.name != "verification"
        and (each.inner or each.form or {each.low, each.chars_max, each.items_max} != {None})
    )


# Read once: every spawn is checked, against some forty declarations.
_BOUNDED: Final = _bounded(parameters(RunSpec))
_PLAIN: Final = RunSpec(task="")
_NEEDS: Final = (
    (("retry_count",), ("retry_delay", "retry_backoff", "retry_on")),
    (("retry_count", "retry_until_verified"), ("retry_max_time",)),
    (("retry_until_verified",), ("retry_afresh",)),
    (("verification",), ("retry_until_verified",)),
    (("depends_on",), ("include_dependency_result", "accept_partial_dependencies")),
    (("depends_on",), ("dependency_timeout_seconds", "on_dependency_failure")),
)
"""What has no effect without one of which others: the latter first."""
_DEPENDENT: Final = attrgetter(*(each for _, those in _NEEDS for each in those))


def check_spec(spec: RunSpec, *, field: Callable[[Parameter], str]) -> None:
    """Refuse spawn parameters outside their bounds.

    ``field`` gives what the caller knows a parameter as: its path in a body, or a flag.

    Raises:
        UsageError: Names the first wrong field and what is allowed.
    """
    _check_struct(spec, _BOUNDED, field)
    if spec.label is not None:
        check_reachable(field(_named("label")), spec.label)
    falls_back = spec.on_dependency_failure is OnDependencyFailure.FALLBACK
    if falls_back is (spec.fallback_agent_id is None):
        agent, failure = field(_named("fallback_agent_id")), field(_named("on_dependency_failure"))
        raise UsageError(
            f'{agent} and {failure} "fallback" need each other',
            details={"field": failure if falls_back else agent},
        )


def without_effect(spec: RunSpec) -> tuple[str, ...]:
    """What of these parameters does nothing, or less than it seems to: each one sentence."""
    if after := spec.chain_after or spec.for_each or spec.gate:
        spec = msgspec.structs.replace(spec, depends_on=(str(after),))
    found = [
        f"{camel(each)} has no effect without {' or '.join(map(camel, needed))}"
        for needed, those in (() if _DEPENDENT(spec) == _DEPENDENT(_PLAIN) else _NEEDS)
        if not any(getattr(spec, each) for each in needed)
        for each in those
        if getattr(spec, each) != getattr(_PLAIN, each)
    ]
    on_failure = None if spec.verification is None else spec.verification.on_failure
    again = spec.retry_until_verified
    # With retryOn the request says for which errors the retries are.
    if spec.retry_count and not spec.retry_on and not again and on_failure is OnFailure.FAIL:
        found.append(
            "retryCount is for attempts that end in an error; a failed check of the contract is"
            " tried again with retryUntilVerified"
        )
    if again and on_failure is OnFailure.RETRY_ONCE:
        found.append("onFailure: retry_once has no effect beside retryUntilVerified")
    return tuple(found)


def _named(attribute: str) -> Parameter:
    return next(each for each in parameters(RunSpec) if each.attribute == attribute)


def check_struct(struct: Judge | Budget, field: str) -> None:
    """The same for what a contract says of its judge.

    Raises:
        UsageError: Names the first wrong field, below ``field``.
    """
    declared = _bounded(parameters(type(struct)))
    _check_struct(struct, declared, lambda parameter: f"{field}.{parameter.name}")


def _check_struct(
    struct: msgspec.Struct, declared: Sequence[Parameter], field: Callable[[Parameter], str]
) -> None:
    for each in declared:
        value = getattr(struct, each.attribute)
        # A default is right by definition, and most parameters are left at theirs.
        if value is each.default or value == each.default:
            continue
        if each.inner:
            _check_struct(value, each.inner, field)
        else:
            _check_value(value, each, field(each))


def _check_value(value: object, declared: Parameter, field: str) -> None:
    match value:
        case str() if declared.form == "task":
            check_task(value, field=field)
        case str() if declared.form == "path":
            check_path(field, value)
        case str() if declared.chars_max is not None:
            check_name(field, value, chars_max=declared.chars_max)
        case int() | float() if declared.low is not None and declared.high is not None:
            _check_number(field, value, declared.low, declared.high)
        case tuple() if declared.items_max is not None:
            if len(value) > declared.items_max:
                raise UsageError(
                    f"{field} must have at most {declared.items_max} entries, not {len(value)}",
                    details={"field": field},
                )
            for index, item in enumerate(value):
                # A flag is given once for each.
                place = field if field.startswith("-") else f"{field}[{index}]"
                check_name(place, item, chars_max=NAME_CHARS_MAX)
        case _:
            pass


def check_task(task: str, *, field: str) -> None:
    """Refuse a task, or a message that may become one, that is empty or larger than 256 KiB."""
    size = len(task.encode())
    if size > TASK_BYTES_MAX:
        raise UsageError(
            f"{field} must be at most {TASK_BYTES_MAX} bytes (256 KiB), not {size}",
            hint="put the material into a file and name its path in the task",
            details={"field": field, "bytes": size, "max": TASK_BYTES_MAX},
        )
    if not task.strip():
        raise UsageError(f"{field} must not be empty", details={"field": field})


def check_name(field: str, text: str, *, chars_max: int) -> None:
    """Refuse an empty, too long or multi-line name, and one with control characters.

    Names are printed into inbox lines and terminals; a line break in one could pose as a message.
    """
    if not text.strip():
        raise UsageError(f"{field} must not be empty", details={"field": field})
    if len(text) > chars_max:
        raise UsageError(
            f"{field} must have at most {chars_max} characters, not {len(text)}",
            details={"field": field, "max": chars_max},
        )
    if any(unicodedata.category(character) in {"Cc", "Zl", "Zp"} for character in text):
        raise UsageError(
            f"{field} must be one line without control characters", details={"field": field}
        )


def check_reachable(field: str, label: str, *, others: Sequence[str] = SELECTING) -> None:
    """Refuse a label, or a plan's name, that means something else wherever one is named.

    What begins like one of ``others`` selects by something else.

    Raises:
        UsageError: Says what it means, and proposes another.
    """
    kind = next((each for each in others if label.startswith(each)), None)
    if kind is not None:
        meaning, instead = f"{kind}… selects runs by something else", label.replace(":", "-", 1)
    elif label == LAST:
        meaning, instead = "that word selects the newest one", "last-one"
    elif _ID.fullmatch(label):
        meaning, instead = "that is how an id looks", label.removeprefix("r-")
    else:
        return
    raise UsageError(
        f'{field} "{label}" could never be named: {meaning}',
        hint=f'another one, such as "{instead}"',
        details={"field": field},
    )


def check_path(field: str, text: str) -> None:
    """Refuse a path that no file can have."""
    size = len(text.encode())
    if not 1 <= size <= PATH_BYTES_MAX:
        raise UsageError(
            f"{field} must be a path of 1 to {PATH_BYTES_MAX} bytes, not {size}",
            details={"field": field},
        )


def _check_number(field: str, value: float, low: float, high: float) -> None:
    # A comparison with NaN is false, so it is refused here too.
    if low <= value <= high:
        return
    is_printable = isinstance(value, float) or abs(value) < PRINTABLE_MAX
    shown = f"{value}" if is_printable and not math.isnan(value) else "that"
    raise UsageError(
        f"{field} must be {low:g} to {high:.10g}, not {shown}",
        details={"field": field, "min": low, "max": high},
    )
