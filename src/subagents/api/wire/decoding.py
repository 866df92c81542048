"""JSON values to structs, with our words for what is wrong: the field's path and what is allowed.

``msgspec`` finds the mistake; its message is rewritten here once, for every body of every surface.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeVar

import msgspec
from msgspec import inspect

from subagents.config.settings import nearest
from subagents.errors import UsageError
from subagents.text import cut

SHOWN_CHARS_MAX: Final = 60
"""How much of a wrong value the message that refuses it shows."""
MISREAD_BYTES_MAX: Final = 1024 * 1024
"""Up to this size a body that does not decode is read again, only to name the wrong field."""

T = TypeVar("T", bound=msgspec.Struct)


def one_of(field: str, word: str, allowed: Sequence[str]) -> str:
    """``word`` when it is allowed.

    Raises:
        UsageError: Lists what is allowed, and the nearest.
    """
    if word in allowed:
        return word
    raise _none_of(field, word, allowed)


def _none_of(field: str, word: str, allowed: Sequence[str]) -> UsageError:
    listed = " or ".join(f'"{each}"' for each in allowed)
    return UsageError(
        f'{field} must be {listed}, not "{shown(word)}"{guess(word, allowed)}',
        details={"field": field, "allowed": list(allowed)},
    )


def parse_json(body: bytes) -> object:
    """JSON values.

    Raises:
        UsageError: Not UTF-8, not JSON, or nested too deeply.
    """
    try:
        value: object = msgspec.json.decode(body)
    except RecursionError as error:
        raise UsageError("the request body is nested too deeply") from error
    except (UnicodeDecodeError, msgspec.MsgspecError) as error:
        # Which of the two it is depends on the decoder's version.
        if "utf-8" in str(error).lower():
            raise UsageError("the request body is not valid UTF-8") from error
        value = _misread(body, str(error))
    return value


def _misread(body: bytes, complaint: str) -> object:
    """Read again what was refused for one value, so that the refusal can name its field."""
    if len(body) <= MISREAD_BYTES_MAX:
        try:
            value: object = json.loads(body)
        except (ValueError, RecursionError):
            # Then it is no JSON at all, and the first complaint is the right one.
            pass
        else:
            return value
    raise UsageError(f"the request body is not JSON: {complaint}")


def parse_object(body: bytes) -> dict[str, object]:
    """A JSON object; an empty body is the empty object.

    Raises:
        UsageError: It is not JSON, or another value.
    """
    return as_object(parse_json(body)) if body.strip() else {}


def as_object(raw: object) -> dict[str, object]:
    """``raw``, which must be a JSON object."""
    if not isinstance(raw, dict):
        raise UsageError("the request body must be a JSON object")
    return raw


def decode(raw: object, kind: type[T], *, at: str = "") -> T:
    """JSON values as ``kind``; unknown names are refused with the nearest known one.

    Raises:
        UsageError: Names the field (after ``at``) and what is allowed.
    """
    if _may_have_a_bad_text(raw):
        for path, text in texts_in(raw, at.rstrip(".")):
            _check_text(path, text)
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        raise _refusal(str(error), kind, at) from error


# The messages of msgspec, which name the place at their end: ``… - at `$.budget.maxTokens```.
_AT: Final = re.compile(r" - at `(?:key in )?\$\.?(?P<path>.*)`$")
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(?P<name>.*)`", re.DOTALL)
_MISSING: Final = re.compile(r"Object missing required field `(?P<name>.*)`")
_ENUM: Final = re.compile(r"Invalid enum value (?P<value>.*)", re.DOTALL)
_EXPECTED: Final = re.compile(r"Expected (?P<wanted>.*), got `(?P<found>.*)`")
_BOUND: Final = re.compile(r"Expected (?P<wanted>.*)")
_TYPE: Final = re.compile(r"`(?P<name>[^`]*)`")
_STEP: Final = re.compile(r"[^.\[\]]+|\[(?:\d+|\.\.\.)\]")

_WORDS: Final[Mapping[str, str]] = {
    "str": "text",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


def _refusal(message: str, kind: type[msgspec.Struct], at: str) -> UsageError:
    """Our words for msgspec's complaint."""
    found = _AT.search(message)
    path = found["path"] if found else ""
    text = message[: found.start()] if found else message
    field = f"{at}{path}" if path else at.rstrip(".") or "the request body"
    inside = f"{field}." if path else at
    if match := _UNKNOWN.match(text):
        return _unknown(match["name"], inside, _struct_fields(_type_at(kind, path)))
    if match := _MISSING.match(text):
        name = f"{inside}{match['name']}"
        return UsageError(f"{name} is required", details={"field": name})
    if match := _ENUM.match(text):
        enum = _member(_type_at(kind, path), (inspect.EnumType,))
        allowed = [str(each.value) for each in enum.cls] if enum else []
        return _none_of(field, match["value"].strip("'\""), allowed)
    if match := _EXPECTED.match(text):
        wanted, got = _in_words(match["wanted"]), _in_words(match["found"])
        return UsageError(f"{field} must be {wanted}, not {got}", details={"field": field})
    if match := _BOUND.match(text):
        wanted = _TYPE.sub(lambda found: _in_words(found["name"]), match["wanted"])
        return UsageError(f"{field} must be {wanted}", details={"field": field})
    return UsageError(f"{field}: {text}", details={"field": field})


def _unknown(name: str, inside: str, known: Sequence[str], more: Sequence[str] = ()) -> UsageError:
    return UsageError(
        f'unknown parameter "{inside}{shown(name)}"{guess(name, (*known, *more))}',
        hint=f"known: {', '.join(sorted(known))}" if known else None,
        details={"field": f"{inside}{name}", "known": sorted(known)},
    )


def refuse_unknown(
    raw: Mapping[str, object],
    kind: type[msgspec.Struct],
    *,
    inside: str = "",
    also: Sequence[str] = (),
    flags: Mapping[str, str] | None = None,
) -> None:
    """Refuse a name that neither ``kind`` nor ``also`` has, telling those ``flags`` of it."""
    # ``structs.fields`` would cost 0.1 ms a call.
    known = (*kind.__struct_encode_fields__, *also)
    for name in raw:
        if name not in known:
            own = {field: flag for flag, field in (flags or {}).items()}
            raise _unknown(name, inside, [own.get(each, each) for each in known], known)


def guess(word: str, known: Iterable[str]) -> str:
    """The known word that may have been meant, as the end of a sentence; empty = none is near."""
    near = nearest(word, known)
    return f': did you mean "{near}"?' if near else ""


def _in_words(types: str) -> str:
    names = [name.strip(" `") for name in types.split("|")]
    return " or ".join(_WORDS.get(name, name) for name in names)


def _type_at(kind: type[msgspec.Struct], path: str) -> inspect.Type:
    here = inspect.type_info(kind)
    for step in _STEP.findall(path):
        if step.startswith("["):
            items = _member(here, (inspect.VarTupleType, inspect.ListType))
            here = items.item_type if items else here
            continue
        struct = _member(here, (inspect.StructType,))
        fields = {each.encode_name: each.type for each in struct.fields} if struct else {}
        # A mapping's keys are no fields: what is wrong below one is said of the mapping.
        here = fields.get(step, here)
    return here


S = TypeVar("S", bound=inspect.Type)


def _member(here: inspect.Type, kinds: tuple[type[S], ...]) -> S | None:
    """``here``, or the member of the union ``here``, that is one of ``kinds``."""
    bare = _bare(here)
    members = bare.types if isinstance(bare, inspect.UnionType) else (bare,)
    return next((each for each in map(_bare, members) if isinstance(each, kinds)), None)


def _bare(here: inspect.Type) -> inspect.Type:
    """The type without what is declared of it."""
    return here.type if isinstance(here, inspect.Metadata) else here


def _struct_fields(here: inspect.Type) -> list[str]:
    struct = _member(here, (inspect.StructType,))
    return [each.encode_name for each in struct.fields] if struct else []


def texts_in(raw: object, path: str) -> list[tuple[str, str]]:
    """Every text in ``raw``, names included, with the path it stands at."""
    found: list[tuple[str, str]] = []
    # No recursion: a body may be nested as deeply as its parser bears.
    left: list[tuple[str, object]] = [(path, raw)]
    while left:
        here, value = left.pop()
        if isinstance(value, str):
            found.append((here, value))
        elif isinstance(value, list):
            left += [(f"{here}[{i}]", item) for i, item in enumerate(value)]
        elif isinstance(value, dict):
            found += [(f"a name in {here or 'the body'}", name) for name in value]
            left += [(f"{here}.{name}" if here else name, item) for name, item in value.items()]
    return found


def _may_have_a_bad_text(raw: object) -> bool:
    """Whether ``_check_text`` might refuse one: most bodies are known to be good at one look."""
    try:
        return _NUL in msgspec.json.encode(raw)
    except (ValueError, OverflowError, TypeError, RecursionError):
        return True  # half a surrogate pair, or what is no JSON for other reasons


_NUL: Final = rb"\u0000"


def _check_text(field: str, text: str) -> None:
    if "\0" in text:
        raise UsageError(f"{field} must not contain a NUL byte", details={"field": field})
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            f"{field} must be valid UTF-8: it has half a surrogate pair at character {error.start}",
            details={"field": field},
        ) from error


def shown(text: str) -> str:
    """A wrong value, short enough for a message."""
    return cut(text, SHOWN_CHARS_MAX)
