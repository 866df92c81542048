"""What a tool can keep, a tool keeps: the house style that linters do not know."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import subagents

ROOT = Path(__file__).parent.parent
SRC = ROOT / "src" / "subagents"
LINES_MAX = 1000
LINES_BARE_MAX = 25
MODULES_MAX = 18

BANNED_NAMES = {"utils", "util", "helpers", "helper", "manager", "common", "misc", "base", "core"}

REPLACED_WORDS = {
    "door": "endpoint, server",
    "dues": "deadlines",
    "hear": "record, notify",
    "lend": "lease",
    "lent": "leased",
    "noise": "allowance",
    "scribe": "writer",
    "seat": "session",
    "surface": "api",
    "weigh": "decide, check",
}
"""Words this project once had of its own, and the field's words for the same thing."""

OUTSIDE = re.compile(
    r"^\s*Source:|\bseed 00\d|\b[1-8]-(product|lifecycle|tools|observability|surfaces)\b"
)
"""References to papers that no reader of this repository has."""

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
def test_no_module_holds_more_than_one_subject_could_need() -> None:
    long = [
        str(path.relative_to(SRC))
        for path, text in sources(SRC)
        if len(text.splitlines()) > LINES_MAX
    ]

    assert long == []


@pytest.mark.requirement("house:modules")
def test_no_folder_holds_more_modules_than_a_reader_takes_in_at_once() -> None:
    sizes = Counter(path.parent for path, _ in sources(SRC) if path.name != "__init__.py")

    assert {str(folder): n for folder, n in sizes.items() if n > MODULES_MAX} == {}


@pytest.mark.requirement("house:modules")
def test_no_two_modules_of_the_package_have_the_same_name() -> None:
    names = Counter(path.name for path, _ in sources(SRC) if not path.name.startswith("__"))

    assert [name for name, n in names.items() if n > 1] == []


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


@pytest.mark.requirement("house:modules")
def test_names_are_the_terms_of_the_field() -> None:
    found = [
        f"{where(path, node)} {name}: {REPLACED_WORDS[word]}"
        for path, text in sources(SRC)
        for node in ast.walk(ast.parse(text))
        if (name := _name_given(node))
        for word in re.findall(r"[a-z]+", re.sub(r"([A-Z])", r" \1", name).lower())
        if word in REPLACED_WORDS
    ]

    assert found == []


def _name_given(node: ast.AST) -> str:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name
        case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
            return name
    return ""


@pytest.mark.requirement("house:modules")
def test_nothing_refers_to_papers_outside_the_repository() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path, text in sources(SRC, ROOT / "tests", ROOT / "scripts", ROOT / "bench")
        for number, line in enumerate(text.splitlines(), start=1)
        if OUTSIDE.search(line) and "OUTSIDE = " not in line
    ]

    assert found == []


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
    assert len(subagents.__all__) <= 19
