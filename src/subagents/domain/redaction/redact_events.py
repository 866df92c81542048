"""What workers put into events, without secrets; done once, where an event is taken in.

Texts of workers and of programs are redacted before they are reduced, so that journal, run, inbox,
alerts and results hold what everybody may see. Texts of callers (task, messages, answers) are
theirs: kept as they are.

One walk takes every text inside such an event, so that a new field is redacted without being
listed. Only what names something, and is compared elsewhere, must be listed to be left alone.
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple, TypeVar, get_args

import msgspec

from subagents.domain.redaction.own_secrets import own_secrets
from subagents.domain.redaction.redact import Redactor, redact
from subagents.domain.redaction.secret_spans import REDACTED
from subagents.domain.run.events import (
    Alerted,
    AttemptStartFailed,
    DeliverySettled,
    Event,
    Fact,
    ParentNotified,
    RequestAsked,
    SignalReceived,
    VerificationFinished,
)
from subagents.domain.run.run import Run
from subagents.domain.run.values import replace
from subagents.domain.run.worker_output import OutputItem

T = TypeVar("T")


class Redactors(NamedTuple):
    """The states of a worker's two streams, which are written at the same time."""

    stdout: Redactor = Redactor()
    stderr: Redactor = Redactor()


BY_WORKERS: Final[frozenset[type[Fact]]] = frozenset(
    {
        SignalReceived,
        AttemptStartFailed,
        VerificationFinished,
        RequestAsked,
        ParentNotified,
        DeliverySettled,
        Alerted,
    }
)
"""Events with texts that are not a caller's."""

_EXACT: Final = frozenset(
    {
        *("key", "id", "call_id", "session_id", "idempotency_key"),
        *("target", "route_mode", "phases"),  # of a check or a delivery: from the configuration
        "changes",  # of a worktree: its paths are compared with the contract's
    }
)
"""Fields whose texts are names: changed, they would name nothing any more."""


def secrets_of(run: Run) -> tuple[str, ...]:
    """See ``own_secrets``: those that are configured, not those of the daemon's environment."""
    options = run.resolved.options
    return own_secrets(options) if "env" in options else ()


def redact_event(event: Event, own: Sequence[str] = ()) -> Event:
    """The event without secrets in texts that are not a caller's; itself when it has none."""
    return redact_value(event, own) if type(event) in BY_WORKERS else event


def redact_value(value: T, own: Sequence[str] = ()) -> T:
    """All texts inside a value: of structs but for their names, of JSON with its keys.

    Returns:
        A value of the same type; of a struct in which nothing was secret, the same object.
    """
    clean: object = value
    # Exact types first: this is done for every signal of every worker, and most fields are plain.
    kind = type(value)
    if kind is str:
        clean = redact(value, own)  # type: ignore[arg-type]  # it is one
    elif not value or kind in _WITHOUT_TEXT:
        pass
    elif isinstance(value, msgspec.Struct):
        clean = _redacted_struct(value, own)
    elif isinstance(value, Enum):
        pass
    elif isinstance(value, tuple):
        clean = tuple(_redacted(value, own))
    elif isinstance(value, list):
        clean = _redacted(value, own)
    elif isinstance(value, Mapping):
        clean = {redact_value(k, own): redact_value(v, own) for k, v in value.items()}
    return clean  # type: ignore[return-value]  # of the same type


def redact_setting(name: str, value: object) -> object:
    """A value of a configuration, in JSON values, without the secrets in it.

    As ``redact_value``; besides, the name of its key, and the flag before a word of a command, say
    what stands behind them.
    """
    match value:
        case str():
            return _behind(f'{name}: "', value, '"')
        case list():
            flags = [each if isinstance(each, str) else "" for each in ("", *value)]
            return [
                _behind(f"{flag} ", redact(each), "")
                if isinstance(each, str) and flag.startswith("-")
                else redact_setting("", each)
                for flag, each in zip(flags, value, strict=False)
            ]
        case Mapping():
            return {str(key): redact_setting(str(key), each) for key, each in value.items()}
        case _:
            return value


def _behind(before: str, value: str, end: str) -> str:
    """The value as it is redacted behind something that says what it is."""
    shown = redact(f"{before}{value}{end}")
    is_kept = shown.startswith(before) and shown.endswith(end)
    return shown[len(before) : len(shown) - len(end)] if is_kept else REDACTED


_WITHOUT_TEXT: Final = frozenset({int, bool, float, type(None)})


def has_text(value: msgspec.Struct) -> bool:
    """Whether ``redact_value`` has anything to look at: most signals say nothing in words."""
    for name in _FIELDS[type(value)]:
        inside = getattr(value, name)
        if inside and (not isinstance(inside, msgspec.Struct) or has_text(inside)):
            return True
    return False


def _redacted_struct(value: msgspec.Struct, own: Sequence[str]) -> msgspec.Struct:
    changes = {}
    for name in _FIELDS[type(value)]:
        old = getattr(value, name)
        if not old or type(old) in _WITHOUT_TEXT:
            continue
        new = redact_value(old, own)
        # A tuple or dict is made new by the walk; only what differs makes a new event.
        if new is not old and new != old:
            changes[name] = new
    return replace(value, **changes) if changes else value


class _Fields(dict[type[msgspec.Struct], tuple[str, ...]]):
    """Of each kind of struct those that can hold a text to be redacted, by their types."""

    def __missing__(self, kind: type[msgspec.Struct]) -> tuple[str, ...]:
        fields = msgspec.structs.fields(kind)
        found = (f.name for f in fields if f.name not in _EXACT and _may_hold_text(f.type))
        self[kind] = names = tuple(found)
        return names


_FIELDS: Final = _Fields()


def _may_hold_text(kind: object) -> bool:
    if not isinstance(kind, type):
        # A union or a collection; what is no type at all may be anything.
        inside = get_args(kind)
        return not inside or any(_may_hold_text(each) for each in inside)
    if issubclass(kind, msgspec.Struct):
        return bool(_FIELDS[kind])
    return kind not in _WITHOUT_TEXT and not issubclass(kind, Enum)


def _redacted(values: Sequence[object], own: Sequence[str]) -> list[object]:
    """Texts one behind the other may be the lines of one."""
    # As a stream: a private key may come one line an item, and only its first line shows that.
    texts = [each for each in values if isinstance(each, str)]
    shown = iter(Redactor().fold(texts, own)[0])
    return [next(shown) if isinstance(each, str) else redact_value(each, own) for each in values]


def redact_output(
    items: Sequence[OutputItem], redactors: Redactors, own: Sequence[str] = ()
) -> tuple[Sequence[OutputItem], Redactors]:
    """Items of a worker's output, for lines and detectors; most come out as the same objects.

    ``redactors`` are the states behind the items before, those that are returned behind these.
    """
    folded, stdout = redactors.stdout.fold([e.text for e in items if not e.is_stderr], own)
    stderr_folded, stderr = redactors.stderr.fold([e.text for e in items if e.is_stderr], own)
    shown = {False: iter(folded), True: iter(stderr_folded)}
    texts = [next(shown[each.is_stderr]) for each in items]
    clean: list[OutputItem] = []
    for each, text in zip(items, texts, strict=True):
        if text is not each.text:
            each = replace(each, text=text)  # noqa: PLW2901  # the same, cleaned
        if each.tool is not None or each.api_error is not None:
            each = _beside_text(each, own)  # noqa: PLW2901
        clean.append(each)
    return clean, Redactors(stdout, stderr)


def _beside_text(item: OutputItem, own: Sequence[str]) -> OutputItem:
    tool = item.tool
    if tool is not None and tool.plan is not None:
        # The items of a plan, too, may be the lines of one text.
        texts = redact_value(tuple(each.text for each in tool.plan), own)
        pairs = zip(tool.plan, texts, strict=True)
        tool = replace(tool, plan=tuple(replace(each, text=text) for each, text in pairs))
    return replace(item, tool=redact_value(tool, own), api_error=redact_value(item.api_error, own))
