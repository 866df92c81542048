"""Measure what one must know to change something: `make house`.

    python -m scripts.house            print the table
    python -m scripts.house --check    exit 1 where a line budget of pyproject.toml is exceeded

Lines are all lines of Python files but those that only hold a comment: a reason costs no budget.
Comments are those for a reader (no ``noqa``), for every 100 lines of code. A *verified run* is one
run of a command with a contract, from the Python API through an embedded daemon; a file or function
counts when some thread enters it. Words are those of the pages, code included, but for what
is generated; a user's are all but those of the section about the project.
"""

import ast
import asyncio
import io
import os
import re
import sys
import tempfile
import threading
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

from scripts.llms_txt import CONFIG, pages_of
from scripts.marked_pages import without_generated

ROOT: Final = Path(__file__).parents[1]
SRC: Final = ROOT / "src" / "subagents"
EXTENSIONS: Final = SRC / "extensions"
CORE: Final = "core"
SHARED: Final = ("conversation", "mcp")
"""Extensions that others may import."""
FOR_MAKERS: Final = "Project"
"""The section of the site that no user needs."""
FOR_TOOLS: Final = re.compile(r"#(!| ?(noqa|type:|pragma|fmt:|mypy:|ruff:))")
NO_CODE: Final = {
    tokenize.COMMENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
    tokenize.INDENT,
    tokenize.NEWLINE,
    tokenize.NL,
}


def main(arguments: list[str]) -> int:
    """Print the table, or check the budgets."""
    if arguments == ["--check"]:
        over = list(exceeded())
        for line in over:
            print(line, file=sys.stderr)
        return 1 if over else 0
    found = lines()
    print(f"{'':24}{'lines':>9}{'budget':>9}{'modules':>9}{'comments':>10}")
    given, modules, said = budgets(), module_counts(), comments()
    for name in sorted(found, key=lambda each: (each != CORE, -found[each])):
        print(
            f"{name:24}{found[name]:>9,}{given.get(name, 0):>9,}{modules[name]:>9,}"
            f"{said[name]:>10.2f}"
        )
    print(f"{'all of src':24}{sum(found.values()):>9,}{'':>9}{sum(modules.values()):>9,}")
    print(f"{'tests':24}{sum(map(line_count, (ROOT / 'tests').rglob('*.py'))):>9,}")
    arrows = Counter(imports())
    print(f"imports core → extension: {sum(n for (a, _), n in arrows.items() if a == CORE)}")
    others = {k: n for k, n in arrows.items() if k[0] != CORE and k[1] not in SHARED}
    print(f"imports extension → another (but {', '.join(SHARED)}): {sum(others.values())}")
    written = words()
    print(", ".join(f"{name} {count:,}" for name, count in written.items()), "words of pages")
    print(f"words for users: {user_words(written):,} of {house()['user_words']:,}")
    files, functions = verified_run()
    print(f"entered by one verified run: {files} files, {functions} functions")
    return 0


def house() -> Mapping[str, Any]:
    """What pyproject.toml says of budgets."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    found: Mapping[str, Any] = project["tool"]["house"]
    return found


def budgets() -> Mapping[str, int]:
    """Lines that the core and each extension may have."""
    found: Mapping[str, int] = house()["lines"]
    return found


def words() -> Mapping[str, int]:
    """Words of the README and of each section of the site."""
    found = {"README": word_count(ROOT / "README.md")}
    for entry in tomllib.loads((ROOT / CONFIG).read_text("utf-8"))["project"]["nav"]:
        for name, pages in entry.items():
            found[name] = sum(word_count(ROOT / "docs" / each) for each in pages_of(pages))
    return found


def word_count(page: Path) -> int:
    """Words of a page, without what is generated."""
    return len(without_generated(page.read_text("utf-8")).split())


def user_words(written: Mapping[str, int]) -> int:
    """All words but those for makers."""
    return sum(count for name, count in written.items() if name != FOR_MAKERS)


def exceeded() -> Iterator[str]:
    """What is over its budget or has none, in words."""
    given = budgets()
    for name, count in sorted(lines().items()):
        if name not in given:
            yield f"{name} has {count:,} lines and no budget in [tool.house.lines]"
        elif count > given[name]:
            yield (
                f"{name} has {count:,} lines, {count - given[name]:,} more than its budget in"
                " [tool.house.lines]: shorten or move something, or write a decision for a rise"
            )
    if (count := user_words(words())) > (most := house()["user_words"]):
        yield f"the pages for users have {count:,} words, {count - most:,} more than they may have"


def part_of(file: Path) -> str:
    """The extension that a file is of, or the core."""
    if not file.is_relative_to(EXTENSIONS) or file.parent == EXTENSIONS:
        return CORE
    return file.relative_to(EXTENSIONS).parts[0]


def lines() -> Mapping[str, int]:
    """By part of the package."""
    found: Counter[str] = Counter()
    for file in SRC.rglob("*.py"):
        found[part_of(file)] += line_count(file)
    return found


def module_counts() -> Mapping[str, int]:
    """Modules with something in them, by part of the package."""
    return Counter(part_of(each) for each in SRC.rglob("*.py") if line_count(each))


def line_count(file: Path) -> int:
    """All lines of a file but those that only hold a comment."""
    return sum(not line.lstrip().startswith(b"#") for line in file.read_bytes().splitlines())


def comments() -> Mapping[str, float]:
    """Lines of comments for every 100 lines of code, by part of the package."""
    said: Counter[str] = Counter()
    code: Counter[str] = Counter()
    for file in SRC.rglob("*.py"):
        text = file.read_text("utf-8")
        lines = set[int]()
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                said[part_of(file)] += not FOR_TOOLS.match(token.string)
            elif token.type not in NO_CODE:
                lines.update(range(token.start[0], token.end[0] + 1))
        code[part_of(file)] += len(lines.difference(docstring_lines(ast.parse(text))))
    return {part: 100 * said[part] / count for part, count in code.items() if count}


def docstring_lines(tree: ast.AST) -> Iterator[int]:
    """The lines of every literal that stands alone, also below a field."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(ast.Constant(str()), lineno=first, end_lineno=int(last)):
                yield from range(first, last + 1)


def imports() -> Iterator[tuple[str, str]]:
    """``(part, extension)`` of each import from one part into an extension that it is not."""
    for file in SRC.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            names = []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [f"{node.module}.{each.name}" for each in node.names]
            elif isinstance(node, ast.Import):
                names = [each.name for each in node.names]
            for name in {each for each in names if each.startswith("subagents.extensions.")}:
                extension = name.split(".")[2]
                if extension != part_of(file):
                    yield part_of(file), extension


def verified_run() -> tuple[int, int]:
    """Files and functions that one verified run enters, in all threads of the process."""
    from subagents import Orchestrator  # noqa: PLC0415 - measured, not needed for the budgets

    seen: set[CodeType] = set()

    def enter(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            seen.add(frame.f_code)

    async def run(home: str) -> None:
        async with Orchestrator.open(home=home) as subagents:
            await (await subagents.spawn("true", agent="command")).wait()
            threading.setprofile(enter)
            sys.setprofile(enter)
            made = await subagents.spawn(
                "echo ok > done.txt",
                agent="command",
                verification={"artifacts": [{"path": "done.txt"}]},
            )
            await made.wait()
            sys.setprofile(None)

    with tempfile.TemporaryDirectory(prefix="house-") as home:
        os.chdir(home)
        threading.setprofile(enter)
        asyncio.run(run(home))
    threading.setprofile(None)
    own = [each for each in seen if each.co_filename.startswith(str(SRC))]
    named = [each for each in own if not each.co_name.startswith("<")]
    return len({each.co_filename for each in named}), len(named)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
