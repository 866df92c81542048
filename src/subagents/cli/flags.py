"""Flags that many commands share."""

from typing import Annotated, Final

from cyclopts import Parameter

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
