"""How a command declares its flags and words, and those that many commands share.

A command is a function: its parameters are its flags and words, and ``Parameter`` in an annotation
says what their types do not. The parser, help, completion, the manual page and the reference read
these declarations; there is no other one.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from subagents.errors import UsageError
from subagents.text import iso, parse_time

if TYPE_CHECKING:
    from typing import Annotated as Annotated  # noqa: PLC0414  exported, says mypy
else:

    class Annotated:
        """What typing's is to the parser, at a tenth of its calls; for what must start quickly."""

        def __class_getitem__(cls, said: tuple[Any, ...]) -> Any:
            self = cls()
            self.__origin__, *self.__metadata__ = said
            return self


OPTIONS: Final = "Options"
WHOLE: Final = "--help-all"
"""Shows the flags of a command that are rarely needed, too."""


class Parameter(NamedTuple):
    """What help says of a parameter, and how its flag is spelled."""

    name: str | tuple[str, ...] = ()
    """The spellings of a flag, that of messages first; none = made of the parameter's name."""
    help: str = ""
    metavar: str = ""
    """What stands for a value; none = made of the type."""
    group: str = OPTIONS
    """The heading in help under which a flag stands."""
    is_shown: bool = True
    """Whether help shows it; False for what programs of ours or earlier versions alone use."""


class Argument(NamedTuple):
    """One flag, or one word, of a command."""

    attribute: str
    """The parameter that it sets."""
    names: tuple[str, ...] = ()
    """The spellings of a flag; a word has none."""
    opposite: str = ""
    """The flag for the other one of two choices."""
    kind: Callable[[str], Any] = str
    """What makes a value of a text; a flag of ``bool`` takes none."""
    choices: tuple[str, ...] = ()
    sets: tuple[object, object] = (True, False)
    """What a flag that takes no value sets, and its opposite."""
    is_list: bool = False
    """Whether a flag can be repeated; a word that is a list takes all that are left."""
    is_ordered: bool = False
    """Whether its place among others of its attribute counts: a list of ``(flag, text)``."""
    is_required: bool = False
    help: str = ""
    metavar: str = ""
    group: str = OPTIONS
    is_shown: bool = True
    is_everyday: bool = True
    """Whether ``--help`` shows it; ``--help-all`` shows the others, too."""

    @property
    def label(self) -> str:
        """What messages call it."""
        return self.names[0] if self.names else self.attribute.strip("_").upper()


class Together(NamedTuple):
    """Says that several flags make one parameter."""

    make: Callable[..., Any]
    """Called with what was given, by ``Argument.attribute``."""
    flags: Callable[[], Sequence[Argument]]


Json = Annotated[bool, Parameter(name="--json", help="Print JSON; see: subagents help json.")]
Yes = Annotated[bool, Parameter(name=("--yes", "-y"), help="Do not ask for confirmation.")]
Run = Annotated[str, Parameter(help="Id, unique prefix of an id, label or `last`.", metavar="RUN")]
AddTokens = Annotated[int | None, Parameter(help="Raise its budget by N tokens.", metavar="N")]
AddCost = Annotated[float | None, Parameter("--add-cost", "Raise its budget by USD.", "USD")]
SELECTORS: Final = (
    "Ids, prefixes, labels, `last`, `tree:RUN`, `state:NAME`, `plan:NAME`, `tag:NAME` or `dir:DIR`."
)
Runs = Annotated[str, Parameter(help=SELECTORS, metavar="RUN...")]
SomeRuns = Annotated[str, Parameter(help=SELECTORS, metavar="[RUN...]")]
"""Runs where none means all."""


WHEN: Final = "today, yesterday, 24h, 2d, 2026-11-20 or 2026-11-20T14:05"
"""What ``moment`` takes."""


def moment(text: str | None, flag: str) -> str | None:
    """The time that was typed for a flag, as ISO 8601 says it."""
    now_ms = round(time.time() * 1000)
    return None if text is None else iso(parse_time(text, now_ms=now_ms, field=flag))


def refusal(flag: str, why: str, *, hint: str | None = None) -> UsageError:
    """That a flag or word cannot be taken; ``why`` goes on behind its name: ``needs a value``."""
    return UsageError(f"{flag} {why}", hint=hint, details={"field": flag})


def chosen(**views: bool) -> str:
    """The one flag of several ways to look that was given; empty = none.

    Args:
        views: Whether each was given, by its name.

    Raises:
        UsageError: Two of them were.
    """
    first, *more = [f"--{name}" for name, is_given in views.items() if is_given] or [""]
    if more:
        raise refusal(first, f"and {more[0]} are two ways to look: give one of them")
    return first


def refuse_unused(because: str, **given: bool) -> None:
    """Refuse options that nothing would read: what was asked for would silently not be done.

    Args:
        because: Why, behind the name of the option: ``needs --wait``.
        given: Whether each such option was given, by its name: ``dry_run``.

    Raises:
        UsageError: One was; names it.
    """
    for name, is_given in given.items():
        if is_given:
            raise refusal(f"--{name.replace('_', '-')}", because)


@cache
def spawn_rows() -> Mapping[str, Mapping[str, Any]]:
    """What ``scripts.spawn_flags`` says of each spawn parameter's flag, by the parameter."""
    with open(__file__.removesuffix("flags.py") + "spawn_flags.json", encoding="utf-8") as file:  # noqa: PTH123
        return {row["parameter"]: row for row in json.load(file)}


def flag_names() -> dict[str, str]:
    """The flag that messages use, by the path of its spawn parameter."""
    return {name: row["names"][0] for name, row in spawn_rows().items()}
