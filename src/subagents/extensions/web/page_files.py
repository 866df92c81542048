"""Where the built page lies, in a checkout as in an installation, and what is said where it does
not.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from subagents.cli.doctor_check import OK, WARN, Check
from subagents.client.client import Document
from subagents.config.paths import Paths

FOLDER: Final = Path(__file__).parent / "static"
INDEX: Final = "index.html"
MISSING: Final = f"the web page is not in this installation: {FOLDER}/{INDEX}.gz is missing"
WAY_OUT: Final = "install subagents again, or restore that folder in the checkout"


def is_here() -> bool:
    """Whether this installation has the page."""
    return (FOLDER / f"{INDEX}.gz").exists()


def checks(_home: Paths, _diagnostics: Document | None) -> Iterator[Check]:
    """Whether ``ui`` has something to show."""
    if is_here():
        yield Check("web page", OK, "here: subagents ui")
    else:
        yield Check("web page", WARN, MISSING, WAY_OUT)
