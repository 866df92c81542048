"""What a tool can keep, a tool keeps: the house style that linters do not know."""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import TypeGuard

import pytest

import subagents

ROOT = Path(__file__).parent.parent
SRC = ROOT / "src" / "subagents"
LINES_BARE_MAX = 25

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


CLOCKS = {"monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "time", "time_ns"}
GUARD_S = 30
"""What takes longer than this hangs, on whatever machine."""


def _is_clock(node: ast.AST) -> bool:
    """A call such as ``time.monotonic()``, ``perf_counter()`` or ``loop.time()``."""
    match node:
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
            return name in CLOCKS
    return False


class _Spans(ast.NodeVisitor):
    """What in one function holds seconds that have passed, and which assertions bound them.

    Seconds are a difference with a clock in it, and what was assigned or appended from one in the
    same function, or computed from that. Not seen: a clock behind a function of ours, seconds that
    came back from one, what a program under test measured, and a clock compared with a time that
    is due, as in a loop that looks again and again.
    """

    def __init__(self, constants: Mapping[str, float]) -> None:
        self.tight: list[int] = []
        """The lines of assertions that fewer than ``GUARD_S`` have passed."""
        self._constants = constants
        self._clocks: set[str] = set()
        self._spans: set[str] = set()

    def visit_Assign(self, node: ast.Assign) -> None:
        names = {each.id for to in node.targets for each in ast.walk(to) if _is_name(each)}
        if self._is_span(node.value):
            self._spans |= names
        elif any(map(_is_clock, ast.walk(node.value))):
            self._clocks |= names

    def visit_Call(self, node: ast.Call) -> None:
        match node:
            case ast.Call(func=ast.Attribute(attr="append", value=ast.Name(id=name)), args=[value]):
                if self._is_span(value):
                    self._spans.add(name)

    def visit_Assert(self, node: ast.Assert) -> None:
        for each in ast.walk(node.test):
            if isinstance(each, ast.Compare) and self._is_tight(each):
                self.tight.append(node.lineno)

    def _is_span(self, node: ast.AST) -> bool:
        for each in ast.walk(node):
            if _is_name(each) and each.id in self._spans:
                return True
            if isinstance(each, ast.BinOp) and isinstance(each.op, ast.Sub):
                for side in (each.left, each.right):
                    if _is_clock(side) or (_is_name(side) and side.id in self._clocks):
                        return True
        return False

    def _is_tight(self, compared: ast.Compare) -> bool:
        values = [compared.left, *compared.comparators]
        for left, sign, right in zip(values, compared.ops, values[1:], strict=False):
            small, large = (right, left) if isinstance(sign, ast.Gt | ast.GtE) else (left, right)
            is_order = isinstance(sign, ast.Lt | ast.LtE | ast.Gt | ast.GtE)
            if is_order and self._is_span(small) and self._value(large) < GUARD_S:
                return True
        return False

    def _value(self, node: ast.AST) -> float:
        """What is not known is taken for little."""
        match node:
            case ast.Constant(value=int() | float() as number):
                return number
            case ast.Name(id=name):
                return self._constants.get(name, 0.0)
        return 0.0


def _is_name(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name)


def _judged_by_the_clock(text: str) -> list[int]:
    """The lines of such assertions."""
    if not any(f"{each}()" in text for each in CLOCKS):
        return []
    tree = ast.parse(text)
    constants: dict[str, float] = {}
    for node in tree.body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=number))
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant(value=number))
            ) if isinstance(number, int | float):
                constants[name] = number
    found: list[int] = []
    for each in ast.walk(tree):
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            seen = _Spans(constants)
            seen.visit(each)
            found += seen.tight
    return sorted(set(found))


@pytest.mark.requirement("house:no-flakes")
def test_no_test_expects_a_busy_machine_to_be_quick() -> None:
    """Count calls, wait for what has to happen, or turn the clock; ``bench/`` measures."""
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path, text in sources(ROOT / "tests")
        for line in _judged_by_the_clock(text)
    ]

    assert found == []


@pytest.mark.requirement("house:no-flakes")
@pytest.mark.parametrize(
    "lines",
    [
        "began = time.monotonic(); work(); assert time.monotonic() - began < 5",
        "began = perf_counter(); took = perf_counter() - began; assert took * 1000 <= LIMIT",
        "began = loop.time(); assert 3 > loop.time() - began",
        "took.append(time.time() - asked); assert min(took) < 1.0",
        "began = time.monotonic(); assert time.monotonic() - began < other.LIMIT",
    ],
)
def test_an_expectation_that_something_is_quick_is_seen(lines: str) -> None:
    body = "\n    ".join(lines.split("; "))
    assert _judged_by_the_clock(f"LIMIT = 29.0\ndef test() -> None:\n    {body}\n")


@pytest.mark.requirement("house:no-flakes")
@pytest.mark.parametrize(
    "lines",
    [
        "began = time.monotonic(); assert time.monotonic() - began < 60",
        "began = time.monotonic(); assert time.monotonic() - began < LIMIT",
        "began = time.monotonic(); assert time.monotonic() - began >= 0.9",
        "due = time.monotonic() + 1; assert time.monotonic() < due",
        "began = time.process_time(); assert time.process_time() - began < 1",
    ],
)
def test_guards_lower_bounds_polls_and_processor_time_are_let_through(lines: str) -> None:
    body = "\n    ".join(lines.split("; "))
    assert not _judged_by_the_clock(f"LIMIT: Final = 40\ndef test() -> None:\n    {body}\n")


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


PREPOSITION = re.compile(
    r"(about|above|across|after|against|along|among|around|as|at|before|behind|below|beneath|beside"
    r"|besides|between|beyond|by|despite|during|except|for|from|in|inside|into|near|of|off|on|onto"
    r"|outside|over|per|since|through|to|toward|under|until|upon|via|with|within|without)\b",
    re.IGNORECASE,
)
WITHOUT_SUBJECT_MAX = 134
"""How many are left in ``WITHOUT_SUBJECT``; they may only become fewer, elsewhere there is none."""
WITHOUT_SUBJECT = ("api/", "engine/", "client/plan_", "extensions/plans/")


def field_docs_of(tree: ast.AST) -> Iterator[ast.Constant]:
    """The literals below fields, members and constants, which a reference shows as they are."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for field, text in pairwise(body if isinstance(body, list) else ()):
            match field, text:
                case (
                    (ast.AnnAssign() | ast.Assign()),
                    ast.Expr(value=ast.Constant(value=str()) as doc),
                ):
                    yield doc


@pytest.mark.requirement("house:field-docs")
def test_a_field_doc_names_its_subject_and_begins_with_no_preposition() -> None:
    """A reader of the reference sees "Of some runs." without the field's neighbours."""
    found = [
        (str(path.relative_to(SRC)), doc.lineno)
        for path, text in sources(SRC)
        for doc in field_docs_of(ast.parse(text))
        if PREPOSITION.match(str(doc.value))
    ]
    left = [each for each in found if each[0].startswith(WITHOUT_SUBJECT)]

    assert [f"{path}:{line}" for path, line in found if (path, line) not in left] == []
    assert len(left) <= WITHOUT_SUBJECT_MAX


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
