"""The one parser: reads what a command is called with by the declaration that its function is.

See ``cli.flags``. The declaration is read without ``inspect``, which takes longer to import than
most commands take. What nothing consumes is refused: there is no way past the declaration.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Any, Final, Literal, TypeAlias, get_args, get_origin, get_type_hints

from subagents.cli.flags import Argument, Parameter, Together, refusal
from subagents.errors import UsageError

END_OF_OPTIONS: Final = "--"
VARIABLE: Final = 4
"""``inspect.CO_VARARGS``, the flag of a function with ``*words``."""
SWITCHED: Final = {
    **dict.fromkeys(("true", "1", "yes", "y", "t", "on"), True),
    **dict.fromkeys(("false", "0", "no", "n", "f", "off"), False),
}
"""``--flag=false``."""

_Part: TypeAlias = tuple[str, Sequence[Argument], Together | None]
"""Flags that together make the parameter of that name; or one flag or word, without a name."""


def parse(
    function: Callable[..., Any],
    line: Sequence[str],
    meant: Callable[[str], str | None] = lambda _: None,
) -> partial[Any]:
    """The call of a command's function for what stands behind its name.

    ``meant`` knows what to do instead of a flag that there is not.

    Raises:
        UsageError: Names the flag or word that is wrong, missing or too much.
    """
    parts = list(_parts(function))
    given, words = _read(parts, line, meant)
    by_place: list[Any] = []
    for name, arguments, _ in parts:
        for each in arguments:
            if each.names:
                if each.is_list and each.attribute in given[name]:
                    given[name][each.attribute] = tuple(given[name][each.attribute])
                elif each.is_required and each.attribute not in given[name]:
                    raise refusal(each.label, "is missing")
            elif each.is_list:
                by_place += [_converted(each, each.label, word) for word in words]
                words = []
            elif words:
                by_place.append(_converted(each, each.label, words.pop(0)))
            elif each.is_required:
                raise refusal(each.label, "is missing")
    if words:
        raise UsageError(f"unexpected argument: {words[0]!r}", details={"field": words[0]})
    made = {name: together.make(**given[name]) for name, _, together in parts if together}
    return partial(function, *by_place, **given[""], **made)


def declared(function: Callable[..., Any]) -> list[Argument]:
    """The flags and words of a function, in its order."""
    return [each for _, arguments, _ in _parts(function) for each in arguments]


def _parts(function: Callable[..., Any]) -> Iterator[_Part]:
    # What a decorator was put around says what it takes.
    function = getattr(function, "__wrapped__", function)
    code = function.__code__
    count, end = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    words, flags = code.co_varnames[:count], code.co_varnames[count:end]
    rest = code.co_varnames[end : end + bool(code.co_flags & VARIABLE)]
    optional = {*words[count - len(function.__defaults__ or ()) :], *rest}
    optional.update(function.__kwdefaults__ or ())
    hints = function.__annotations__
    if any(isinstance(hint, str) for hint in hints.values()):
        hints = get_type_hints(function, include_extras=True)
    for name in (*words, *rest, *flags):
        hint = hints.get(name, str)
        said = getattr(hint, "__metadata__", (Parameter(),))[0]
        if isinstance(said, Together):
            yield name, said.flags(), said
            continue
        is_required = name not in optional
        each = _argument(name, hint, is_flag=name in flags, is_required=is_required)
        yield "", (each._replace(is_list=True) if name in rest else each,), None


def near(word: str, known: Collection[str]) -> str:
    """``; did you mean 'list'?``, or nothing."""
    from subagents.config.settings import nearest  # noqa: PLC0415  most command lines are right

    found = nearest(word, known)
    return f"; did you mean {found!r}?" if found else ""


def _argument(name: str, hint: Any, *, is_flag: bool, is_required: bool) -> Argument:
    kind, about = hint, Parameter()
    if hasattr(hint, "__metadata__"):
        kind, about = hint.__origin__, hint.__metadata__[0]
    if is_list := get_origin(kind) is tuple:
        kind = get_args(kind)[0]
    elif type(None) in get_args(kind):
        kind = next(each for each in get_args(kind) if each is not type(None))
    choices = get_args(kind) if get_origin(kind) is Literal else ()
    names = (about.name,) if isinstance(about.name, str) else about.name
    return Argument(
        attribute=name,
        names=(names or (f"--{name.strip('_').replace('_', '-')}",)) if is_flag else (),
        kind=str if choices else kind,
        choices=choices,
        is_list=is_list,
        is_required=is_required,
        help=about.help,
        metavar=about.metavar,
        group=about.group,
        is_shown=about.is_shown,
    )


def _read(
    parts: Sequence[_Part], line: Sequence[str], meant: Callable[[str], str | None]
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """What the flags set, by the name of their part and by attribute, and the words."""
    given: dict[str, dict[str, Any]] = {"": {}}
    flags: dict[str, tuple[dict[str, Any], Argument]] = {}
    for name, arguments, _ in parts:
        into = given.setdefault(name, {})
        for each in arguments:
            flags |= dict.fromkeys((*each.names, each.opposite), (into, each))
    words: list[str] = []
    left = deque(line)
    while left:
        word = left.popleft()
        if word == END_OF_OPTIONS:
            return given, [*words, *left]
        if not _is_flag(word):
            words.append(word)
            continue
        flag, sign, text = word.partition("=")
        if flag not in flags and word[:2] in flags:
            # `-lx` and `-dl x`
            flag, sign, text = word[:2], "=", word[2:]
            if flags[flag][1].kind is bool:
                sign, text = "", f"-{text}"
                left.appendleft(text)
                flag = flag if _is_flag(text) else word
        # One that is spelled with underscores, as names are in Python, is meant all the same.
        flag = flag if flag in flags else flag.replace("_", "-")
        if flag not in flags:
            said = meant(flag)
            if said and said.startswith("-") and said.partition(" ")[0].rstrip(",") not in flags:
                said = None
            text = f"there is no option {flag}{'' if said else near(flag, flags)}"
            raise UsageError(text, hint=said, details={"field": flag})
        into, each = flags[flag]
        value: str | None = text if sign else None
        if value is None and each.kind is not bool:
            # A flag in place of a value is a value that was forgotten; `--flag=-x` gives one.
            if not left or left[0] == END_OF_OPTIONS or _is_flag(left[0]):
                raise refusal(flag, "needs a value")
            value = left.popleft()
        _put(into, each, flag, value)
    return given, words


def _is_flag(word: str) -> bool:
    """Also ``-`` and negative numbers are words, and values."""
    if not word.startswith("-") or word == "-":
        return False
    try:
        float(word)
    except ValueError:
        return True
    return False


def _put(given: dict[str, Any], argument: Argument, flag: str, text: str | None) -> None:
    name = argument.attribute
    if argument.is_ordered:
        given.setdefault(name, []).append((flag, text))
    elif argument.is_list:
        given.setdefault(name, []).append(_converted(argument, flag, text))
    elif name not in given:
        given[name] = _converted(argument, flag, text)
    elif argument.opposite:
        raise refusal(argument.label, f"and {argument.opposite}: give one of them, once")
    else:
        # The last one does not win: a script that says two things has a mistake.
        raise refusal(flag, "is given twice")


def _converted(argument: Argument, flag: str, text: str | None) -> Any:
    if argument.kind is bool:
        is_on = True if text is None else SWITCHED.get(text.lower())
        if is_on is None:
            raise refusal(flag, "takes no value")
        return argument.sets[is_on is (flag == argument.opposite)]
    if argument.choices and text not in argument.choices:
        *others, last = argument.choices
        words = f"must be {', '.join(others)} or {last}, not {text!r}"
        raise refusal(flag, f"{words}{near(text or '', argument.choices)}")
    try:
        return argument.kind(text or "")
    except ValueError as error:
        number = "a whole number" if argument.kind is int else "a number"
        raise refusal(flag, f"must be {number}, not {text!r}") from error
