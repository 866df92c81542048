"""What the tests prove, by requirement: docs/requirements.md, generated from the tests' markers.

    python -m scripts.requirements_page [--check] [FILE]

A requirement is an id, ``area:behaviour``. A test names those it proves with
``@pytest.mark.requirement("area:behaviour")``, a behaviour of a public suite with
``@SUITE.behaviour("area:behaviour")``; the sentence is the first such test's name. The page is
committed so that a promise which loses its last test shows in a review.
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = "docs/requirements.md"
HEAD: Final = """# Requirements

Every behaviour that a test proves, by area; written by `make docs` from the tests' markers.
`grep -rn 'the:id' tests src/subagents/extensions/testing` finds the tests, which say the rest.
"""


def proofs(root: Path = ROOT) -> dict[str, list[str]]:
    """Requirement id → the names of the tests that prove it; read from the source, not imported."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(
        [*root.glob("tests/**/*.py"), *root.glob("src/subagents/extensions/testing/*.py")]
    ):
        tree = ast.parse(path.read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                for decorator in node.decorator_list:
                    for name in _marked(decorator):
                        found[name].append(node.name)
        for name in _marked(tree):  # also those in lists of parameters and in ``pytestmark``
            found.setdefault(name, [])
    return dict(found)


def page(found: dict[str, list[str]]) -> str:
    """The page for these proofs: an area per heading, a requirement per line."""
    areas: defaultdict[str, list[str]] = defaultdict(list)
    for name in sorted(found):
        sentence = next(map(_sentence, sorted(found[name])), "")
        areas[name.partition(":")[0]].append(f"- `{name}` {sentence}".rstrip())
    parts = [f"## {area}\n\n" + "\n".join(lines) + "\n" for area, lines in sorted(areas.items())]
    return "\n".join([HEAD, *parts])


def named(text: str) -> set[str]:
    """The ids that a page lists."""
    return {line.split("`")[1] for line in text.splitlines() if line.startswith("- `")}


def main(arguments: list[str]) -> int:
    """Write the page; with ``--check`` compare the ids only, since sentences may be reworded."""
    is_check = "--check" in arguments
    file = Path(next((each for each in arguments if each != "--check"), PAGE))
    found = proofs()
    if not is_check:
        file.write_text(page(found), encoding="utf-8")
        return 0
    listed = named(file.read_text(encoding="utf-8")) if file.exists() else set()
    for name in sorted(listed ^ set(found)):
        what = "has no test any more" if name in listed else "is not in the page"
        sys.stderr.write(f"{file}: {name} {what}: run `make docs`\n")
    return int(listed != set(found))


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
