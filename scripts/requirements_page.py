"""What the tests prove, by requirement: docs/requirements.md, drawn from the tests' markers.

    python -m scripts.requirements_page COMMIT    what a test of COMMIT proves, and none any more

A requirement is an id, ``area:behaviour``. A test names those it proves with
``@pytest.mark.requirement("area:behaviour")``, a behaviour of a public suite with
``@SUITE.behaviour("area:behaviour")``; the sentence is the first such test's name. The list is
drawn where the site is built (``scripts.docs_site``), and in no commit: a reviewer asks here for
the promises that lost their last test.
"""

import ast
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from scripts.marked_pages import drawn_anew

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = "docs/requirements.md"
BEGIN: Final = "<!-- requirements: drawn by `make site` from the tests' markers -->"
END: Final = "<!-- end of requirements -->"
MARKED: Final = ("tests", "src/subagents/extensions/testing")
"""The folders whose markers count."""


def proofs(root: Path = ROOT) -> dict[str, list[str]]:
    """Requirement id → the names of the tests that prove it; read from the source, not imported."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(file for each in MARKED for file in (root / each).rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                for decorator in node.decorator_list:
                    for name in _marked(decorator):
                        found[name].append(node.name)
        for name in _marked(tree):  # also those in lists of parameters and in ``pytestmark``
            found.setdefault(name, [])
    return dict(found)


def drawn(page: str) -> str:
    """``page`` with the requirements of today."""
    return drawn_anew(page, BEGIN, END, *sections(proofs()))


def sections(found: dict[str, list[str]]) -> list[str]:
    """The page's part for these proofs: an area per heading, a requirement per line."""
    areas: defaultdict[str, list[str]] = defaultdict(list)
    for name in sorted(found):
        sentence = next(map(_sentence, sorted(found[name])), "")
        areas[name.partition(":")[0]].append(f"- `{name}` {sentence}".rstrip())
    return [f"## {area}\n\n" + "\n".join(lines) for area, lines in sorted(areas.items())]


def lost(commit: str, root: Path = ROOT) -> set[str]:
    """The requirements that a test of ``commit`` names, and none of the files as they are now."""
    with tempfile.TemporaryDirectory() as name:
        archived = subprocess.run(
            ["git", "archive", commit, *MARKED], cwd=root, stdout=subprocess.PIPE, check=True
        )
        subprocess.run(["tar", "-x"], cwd=name, input=archived.stdout, check=True)
        return {*proofs(Path(name))} - {*proofs(root)}


def main(arguments: Sequence[str]) -> int:
    """Say what was lost; 1 = something."""
    (commit,) = arguments
    found = lost(commit)
    for name in sorted(found):
        sys.stdout.write(f"{name}\n")
    return int(bool(found))


def _marked(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr=("requirement" | "behaviour")), args=arguments):
                for argument in arguments:
                    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                        yield argument.value


def _sentence(name: str) -> str:
    return name.removeprefix("test_").replace("_", " ")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
