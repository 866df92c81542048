"""What a tool can keep, a tool keeps: the house style that linters do not know."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import subagents

ROOT = Path(__file__).parent.parent
SRC = ROOT / "src" / "subagents"
LINES_MAX = 500
LINES_AT_ALL_MAX = 950
LINES_BARE_MAX = 25

LONG_MODULES = {
    "domain/lifecycle/reduce.py": "the one place where a run changes",
    "domain/run/run.py": "a run and its parts; they name each other, and everybody names them",
    "client/client.py": "one method per call of the HTTP interface, each a few lines",
    "api/answers/explain.py": "one sentence per phase, one line per event",
    "tests/simulation/scenario.py": "one kind of disturbance after the other",
    "testing/store_suite.py": "one promise of a store after the other",
    "tests/simulation/outside_world.py": "everything outside the engine, in one seeded place",
}
"""Modules over 500 lines, each with its reason."""

BANNED_NAMES = {"utils", "util", "helpers", "helper", "manager", "common", "misc", "base", "core"}

STATEMENT = re.compile(
    r"^\s*(SELECT\s.+\sFROM|INSERT\s+(OR\s+\w+\s+)?INTO|UPDATE\s+\w+\s+SET|DELETE\s+FROM|"
    r"CREATE\s+(TABLE|INDEX|UNIQUE)|ALTER\s+TABLE|DROP\s+(TABLE|INDEX))\b",
    re.IGNORECASE | re.DOTALL,
)
NOTE_TO_SELF = re.compile(r"#\s*(TODO|FIXME|XXX|HACK)\b")


def sources(*folders: Path) -> Iterator[tuple[Path, str]]:
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            yield path, path.read_text("utf-8")


def where(path: Path, node: ast.AST) -> str:
    return f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}"


@pytest.mark.requirement("house:modules")
def test_modules_are_short_or_have_a_reason() -> None:
    long = {
        str(path.relative_to(SRC)): len(text.splitlines())
        for path, text in sources(SRC)
        if len(text.splitlines()) > LINES_MAX
    }

    assert {name: lines for name, lines in long.items() if name not in LONG_MODULES} == {}
    assert max(long.values(), default=0) <= LINES_AT_ALL_MAX


@pytest.mark.requirement("house:modules")
def test_modules_are_named_for_what_they_are() -> None:
    folders = (SRC, ROOT / "tests")
    banned = [
        str(path.relative_to(ROOT))
        for folder in folders
        for path in folder.rglob("*")
        if BANNED_NAMES & set(re.split(r"[_.]", path.name.removesuffix(".py")))
        and path.suffix in {".py", ""}
    ]

    assert banned == []


def _sleeps(tree: ast.AST) -> Iterator[ast.Call]:
    """All but turns of the loop and random instants for a kill."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        owner = node.func.value
        is_sleep = node.func.attr == "sleep" and isinstance(owner, ast.Name)
        if is_sleep and isinstance(owner, ast.Name) and owner.id in {"time", "asyncio"}:
            seconds = node.args[0] if node.args else None
            is_turn = isinstance(seconds, ast.Constant) and seconds.value == 0
            is_random = isinstance(seconds, ast.Call) and ast.unparse(seconds.func).endswith(
                ".uniform"
            )
            if not (is_turn or is_random):
                yield node


@pytest.mark.requirement("house:no-sleeping-tests")
def test_no_test_sleeps_blindly() -> None:
    """Real processes have to be looked at again and again; everything else has a fake clock."""
    blind = [
        where(path, call)
        for path, text in sources(ROOT / "tests")
        if "simulation" not in path.parts  # its loop has a time of its own
        for tree in (ast.parse(text),)
        for call in _sleeps(tree)
        if not _is_poll(tree, call)
    ]

    assert blind == []


def _is_poll(tree: ast.AST, call: ast.Call) -> bool:
    """Inside a ``while`` or ``for`` loop that looks, or the ``sleep`` of a real clock."""
    for node in ast.walk(tree):
        is_loop = isinstance(node, ast.While | ast.For | ast.AsyncFor)
        is_clock = isinstance(node, ast.AsyncFunctionDef) and node.name == "sleep"
        if (is_loop or is_clock) and call in ast.walk(node):
            return True
    return False


@pytest.mark.requirement("house:sql-in-files")
def test_sql_is_in_files() -> None:
    strings = [
        where(path, node)
        for path, text in sources(SRC)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and STATEMENT.match(node.value)
    ]

    assert strings == []


@pytest.mark.requirement("house:documented")
def test_every_module_and_public_function_of_size_is_documented() -> None:
    """A one-screen function with a good name may stand alone; what is longer says what it does."""
    bare = []
    for path, text in sources(SRC):
        if path.name == "store_suite.py":
            continue  # its names are sentences already
        tree = ast.parse(text)
        if text.strip() and ast.get_docstring(tree) is None:
            bare.append(where(path, tree))
        for node in tree.body:
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            lines = (node.end_lineno or node.lineno) - node.lineno
            is_public = not node.name.startswith("_")
            if is_public and lines > LINES_BARE_MAX and ast.get_docstring(node) is None:
                bare.append(f"{where(path, node)} {node.name}")

    assert bare == []


@pytest.mark.requirement("house:no-markers")
def test_no_notes_to_self_are_left_behind() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path, text in sources(SRC, ROOT / "tests")
        for number, line in enumerate(text.splitlines(), start=1)
        if NOTE_TO_SELF.search(line)
    ]

    assert found == []


@pytest.mark.requirement("house:typed")
def test_every_public_name_has_a_typed_use() -> None:
    tree = ast.parse((ROOT / "tests" / "typing_api.py").read_text("utf-8"))
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}

    assert sorted(set(subagents.__all__) - used) == []
    assert len(subagents.__all__) <= 15
