"""Flags that many commands share."""

from typing import Annotated, Final

from cyclopts import Parameter

from subagents.errors import UsageError

Json = Annotated[bool, Parameter(name="--json", help="Print one JSON document on stdout.")]
JsonLines = Annotated[
    bool, Parameter(name="--json", help="Print JSON documents on stdout, one on each line.")
]
"""Of what goes on."""
Yes = Annotated[bool, Parameter(name=["--yes", "-y"], help="Do not ask for confirmation.")]
Run = Annotated[str, Parameter(help="Id, unique prefix of an id, label or `last`.", metavar="RUN")]
SELECTORS: Final = (
    "Ids, prefixes, labels, `last`, `tree:RUN`, `phase:NAME`, `plan:NAME`, `tag:NAME` or `dir:DIR`."
)
Runs = Annotated[str, Parameter(help=SELECTORS, metavar="RUN...")]
SomeRuns = Annotated[str, Parameter(help=SELECTORS, metavar="[RUN...]")]
"""Where none means all."""


def refuse_unused(because: str, **given: bool) -> None:
    """Refuse options that nothing would read: what was asked for would silently not be done.

    Args:
        because: Why, behind the name of the option: ``needs --wait``.
        given: Of each such option, by its name, whether it was given.

    Raises:
        UsageError: One was; names it.
    """
    for name, is_given in given.items():
        if is_given:
            flag = f"--{name}"
            raise UsageError(f"{flag} {because}", details={"field": flag})
