"""What a set of tests notices: single random faults put into the source, one after the other.

    python -m scripts.mutants --seed 28 --count 60 --list
    python -m scripts.mutants --seed 28 --count 60 --run "python -m pytest -q -x {mirror}"

The same seed and source draw the same mutants, of each group of packages as many. ``--run`` tries
each in a copy of the checkout, whose own environment imports the copy, in its child processes, too;
``{mirror}`` is the folder of tests that mirrors the mutant's group. Of several ``--run`` the first
one that is red ends it. All must be green on what was not changed; a mutant has three times as long
as that took, and a minute. Nothing is judged twice: a test that fails by chance counts as a kill,
so the first failure is named. Needs the packages of the dependency group ``mutants``.
"""

import argparse
import ast
import importlib.util
import os
import queue
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.provider import OperatorProvider
from parso.python.tree import Keyword

GROUPS: Final = ("engine", "domain", "store", "api", "runtimes", "cli")
COMPARISONS: Final = {
    "Eq": ("NotEq",),
    "NotEq": ("Eq",),
    "Lt": ("LtE", "GtE"),
    "LtE": ("Lt", "Gt"),
    "Gt": ("GtE", "LtE"),
    "GtE": ("Gt", "Lt"),
    "Is": ("IsNot",),
    "IsNot": ("Is",),
}
"""The others that cosmic-ray has change a type check, or nothing (``==`` into ``is``)."""
OPERATORS: Final = (
    *(
        f"ReplaceComparisonOperator_{old}_{new}"
        for old, news in COMPARISONS.items()
        for new in news
    ),
    *("ReplaceBinaryOperator_Add_Sub", "ReplaceBinaryOperator_Sub_Add"),
    *("AddNot", "ReplaceUnaryOperator_Delete_Not", "ReplaceAndWithOr", "ReplaceOrWithAnd"),
    *("ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "NumberReplacer", "ExceptionReplacer"),
    *("ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "ZeroIterationForLoop"),
)
COPIED_NOT: Final = shutil.ignore_patterns(
    ".git", ".venv", "node_modules", "__pycache__", ".*_cache"
)
DRAWS_MAX: Final = 10_000
SPARE_S: Final = 60.0
FAILED: Final = re.compile(r"^(?:FAILED|ERROR) (\S.*?)(?: - .*)?$", re.MULTILINE)


class Operator(Protocol):
    """One kind of fault, as cosmic-ray declares them."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        """Where it can change ``node``; a place as often as there are ways."""

    def mutate(self, node: Any, index: int, /) -> Any:
        """``node``, changed in that way."""


class DropCall:
    """A statement that is a call, and does nothing else, is left out."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        """See ``Operator``."""
        if node.type == "simple_stmt" and node.children[0].type in {"atom_expr", "power"}:
            last = node.children[0].children[-1]
            if last.type == "trailer" and last.children[0].value == "(":
                yield node.start_pos, node.children[0].end_pos

    def mutate(self, node: Any, _index: int) -> Any:
        """See ``Operator``."""
        leaf = node.get_first_leaf()
        node.children[0] = Keyword("pass", leaf.start_pos, leaf.prefix)
        return node


class ReturnNone:
    """A function that returns something returns nothing."""

    LIKE_NONE: Final = frozenset({"None", "False", "True", "0", "()", "[]", "{}", '""', "EXIT_OK"})
    """As good as nothing, or another operator's."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        """See ``Operator``."""
        if node.type == "return_stmt":
            value = node.children[1]
            if value.get_code(include_prefix=False) not in self.LIKE_NONE:
                yield value.start_pos, value.end_pos

    def mutate(self, node: Any, _index: int) -> Any:
        """See ``Operator``."""
        node.children[1] = Keyword("None", node.children[1].start_pos, " ")
        return node


@dataclass(frozen=True)
class Mutant:
    """One fault, and how the module then reads."""

    group: str
    path: str
    line: int
    operator: str
    before: str
    after: str
    code: str

    def shown(self) -> str:
        """One line for a reader."""
        return f"{self.path}:{self.line}  {self.operator}  {self.before}  →  {self.after}"


@dataclass(frozen=True)
class Verdict:
    """What the tests said to a mutant; ``outcome`` is killed, survived or timeout."""

    outcome: str
    seconds: float
    command: str
    first_failure: str | None


def drawn(root: Path, package: str, seed: int, count: int, groups: Sequence[str]) -> list[Mutant]:
    """As many of each group; a module is drawn as often as it is long, a place in it like any.

    Args:
        root: The checkout.
        package: Where the groups' folders are in it.
        seed: What draws.
        count: Of all groups together.
        groups: Their folders.

    Raises:
        ValueError: A group has not as many.
    """
    operators = dict[str, Operator](
        {name: OperatorProvider()[name]() for name in OPERATORS},
        DropCall=DropCall(),
        ReturnNone=ReturnNone(),
    )
    found: dict[tuple[str, str], Mutant] = {}
    for at, group in enumerate(groups):
        dice = random.Random(f"{seed} {group}")  # noqa: S311 - whoever reads the list draws it again
        modules = {
            path: path.read_text("utf-8") for path in sorted((root / package / group).rglob("*.py"))
        }
        weights = [text.count("\n") for text in modules.values()]
        wanted = len(found) + count // len(groups) + (at < count % len(groups))
        for _ in range(DRAWS_MAX):
            if len(found) == wanted:
                break
            [(path, text)] = dice.choices(list(modules.items()), weights)
            places = _places(text, operators)
            if not places:
                continue
            line, name, occurrence = dice.choice(dice.choice(list(places.values())))
            code = mutate_code(text, operators[name], occurrence)
            if _is_change(text, code):
                before, after = (each.splitlines()[line - 1].strip() for each in (text, code))
                where = str(path.relative_to(root))
                found[where, code] = Mutant(group, where, line, name, before, after, code)
        if len(found) < wanted:
            raise ValueError(f"{group} has too few places for {wanted} mutants")
    return list(found.values())


def _places(
    text: str, operators: Mapping[str, Operator]
) -> Mapping[object, Sequence[tuple[int, str, int]]]:
    """By place: the line, and which occurrence of which operators."""
    found: dict[object, list[tuple[int, str, int]]] = {}
    seen = dict.fromkeys(operators, 0)
    for node in ast_nodes(get_ast(text)):
        for name, operator in operators.items():
            for place in operator.mutation_positions(node):
                if not _is_left_out(node, name):
                    found.setdefault(place, []).append((place[0][0], name, seen[name]))
                seen[name] += 1
    return found


def _is_left_out(node: Any, operator: str) -> bool:
    """Whether nobody could tell, or everybody: types, declarations, and what is logged."""
    is_number, has_function = operator == "NumberReplacer", False
    while (parent := node.parent) is not None:
        has_function |= parent.type == "funcdef"
        is_type = (
            parent.type == "tfpdef"
            or (parent.type == "annassign" and node is parent.children[1])
            or (parent.type == "funcdef" and node is parent.annotation)
            or (node.type == "if_stmt" and node.children[1].get_code().strip() == "TYPE_CHECKING")
        )
        is_declared = not {"decorator", "assert_stmt"}.isdisjoint((node.type, parent.type)) or (
            parent.type == "classdef" and node is not parent.children[-1]
        )
        text = node.get_code(include_prefix=False) if node.type == "simple_stmt" else ""
        # Of a limit or a pause it is a choice how long exactly, and a behaviour that it is kept.
        is_choice = is_number and parent.type == "argument"
        if is_type or is_declared or is_choice or text.startswith("log."):
            return True
        node = parent
    return is_number and not has_function


def _is_change(before: str, after: str) -> bool:
    with suppress(SyntaxError):
        return ast.dump(ast.parse(before)) != ast.dump(ast.parse(after))
    return False


class Copy:
    """A checkout of its own, with an environment whose ``subagents`` is the copy's."""

    def __init__(self, root: Path, directory: Path) -> None:
        self.directory = directory / "checkout"
        shutil.copytree(root, self.directory, symlinks=True, ignore=COPIED_NOT)
        home = self.directory / ".venv"
        venv.create(home, symlinks=True)
        packages = Path(sysconfig.get_path("purelib", vars={"base": str(home)}))
        # What a `.pth` names is searched in this order, and the `.pth` files in it are not read:
        # so not the one of an editable install, which leads to the original.
        searched = (self.directory / "src", sysconfig.get_path("purelib"))
        (packages / "copy.pth").write_text("".join(f"{each}\n" for each in searched), "utf-8")
        programs = Path(sys.executable).parent
        for each in programs.iterdir():
            own = home / "bin" / each.name
            if own.exists():
                continue
            content = each.read_bytes()
            if content.startswith(b"#!"):
                own.write_bytes(content.replace(bytes(programs), bytes(own.parent)))
                own.chmod(0o755)
            else:
                own.symlink_to(each)
        self._environ = {
            **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            "PATH": os.pathsep.join((str(home / "bin"), os.environ["PATH"])),
            "VIRTUAL_ENV": str(home),
        }

    @contextmanager
    def changed(self, mutant: Mutant) -> Iterator[None]:
        """The module is the mutant's until the block ends."""
        path = self.directory / mutant.path
        original = path.read_bytes()
        compiled = Path(importlib.util.cache_from_source(path))
        try:
            path.write_text(mutant.code, "utf-8")
            # It is told from a new one by length and second only.
            compiled.unlink(missing_ok=True)
            yield
        finally:
            path.write_bytes(original)
            compiled.unlink(missing_ok=True)

    def tested(self, command: str, limit_s: float | None = None) -> Verdict:
        """What the command says here."""
        began = time.monotonic()
        with (
            tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output,
            tempfile.TemporaryDirectory(prefix="m-", ignore_cleanup_errors=True) as own,
        ):
            running = subprocess.Popen(
                shlex.split(command),
                cwd=self.directory,
                # Two pytests that clear up one directory at the same time disturb each other.
                env={**self._environ, "PYTEST_DEBUG_TEMPROOT": own},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                outcome = "killed" if running.wait(limit_s) else "survived"
            except subprocess.TimeoutExpired:
                outcome = "timeout"
            finally:
                self._end_all()
                running.wait()
            seconds = round(time.monotonic() - began, 1)
            output.seek(0)
            text = output.read()
        failed = FAILED.search(text)
        last = text.strip().rsplit("\n", 1)[-1] if outcome == "killed" else None
        return Verdict(outcome, seconds, command, failed[1] if failed else last)

    def _end_all(self) -> None:
        """Daemons that a broken test left, too: all that were started from the copy."""
        mark = bytes(self.directory)
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if any(mark in (entry / name).read_bytes() for name in ("cmdline", "environ")):
                    os.kill(int(entry.name), signal.SIGKILL)


def tried(
    root: Path, mutants: Sequence[Mutant], commands: Sequence[str], jobs: int = 1
) -> Iterator[tuple[Mutant, Verdict]]:
    """Each mutant's verdict, as it comes.

    Raises:
        RuntimeError: A command is red without any of them.
    """
    with ExitStack() as stack:
        copies: queue.SimpleQueue[Copy] = queue.SimpleQueue()
        for _ in range(jobs):
            made = tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True)
            copies.put(copy := Copy(root, Path(stack.enter_context(made))))
        limits = {}
        for command in dict.fromkeys(_filled(each, one) for one in mutants for each in commands):
            sound = copy.tested(command)
            if sound.outcome != "survived":
                raise RuntimeError(f"red without a mutant: {command}: {sound.first_failure}")
            limits[command] = 3 * sound.seconds + SPARE_S
        pool = stack.enter_context(ThreadPoolExecutor(jobs))
        yield from pool.map(partial(_tried, copies, commands, limits), mutants)


def _filled(command: str, mutant: Mutant) -> str:
    return command.replace("{mirror}", f"tests/{mutant.group}")


def _tried(
    copies: queue.SimpleQueue[Copy],
    commands: Sequence[str],
    limits: Mapping[str, float],
    mutant: Mutant,
) -> tuple[Mutant, Verdict]:
    copy = copies.get()
    seconds = 0.0
    try:
        with copy.changed(mutant):
            for each in commands:
                command = _filled(each, mutant)
                verdict = copy.tested(command, limits[command])
                seconds += verdict.seconds
                if verdict.outcome != "survived":
                    break
        return mutant, Verdict(verdict.outcome, seconds, verdict.command, verdict.first_failure)
    finally:
        copies.put(copy)


def main(arguments: Sequence[str]) -> int:
    """Draw and list them, or try them; returns the exit code."""
    parser = argparse.ArgumentParser(description="Measure what tests notice.")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--run", action="append", default=[], metavar="COMMAND")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", help="numbers of the list, with commas between them")
    parser.add_argument("--out", type=Path, help="a line of JSON for each that was tried")
    given = parser.parse_args(arguments)
    root = Path(__file__).parents[1]
    found = dict(enumerate(drawn(root, "src/subagents", given.seed, given.count, GROUPS), 1))
    if given.only:
        found = {number: found[number] for number in map(int, given.only.split(","))}
    if given.list or not given.run:
        for number, mutant in found.items():
            print(f"{number:3}  {mutant.shown()}")
        return 0
    told = tried(root, list(found.values()), given.run, given.jobs)
    for number, (mutant, verdict) in zip(found, told, strict=True):
        seen = f"{verdict.outcome}  {verdict.seconds:.0f} s  {verdict.first_failure or ''}"
        print(f"{number:3}  {mutant.shown()}\n     {seen}", flush=True)
        if given.out is not None:
            line = {"number": number, **asdict(mutant), **asdict(verdict)}
            del line["code"]
            with given.out.open("ab") as out:
                out.write(msgspec.json.encode(line) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
