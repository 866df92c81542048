"""Puts a plan's variables in, and makes a run of each combination of a run's ``matrix``.

``${{ vars.NAME }}`` and ``${{ matrix.NAME }}`` may stand in every text; ``$${{`` is a plain
``${{``. All of it happens before anything is sent: the daemon gets the runs as if somebody had
written them out, but for ``${{ item }}``, which only the daemon knows (``result_items``).
"""

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec
from msgspec import inspect

from subagents.client.spawn_request import json_name
from subagents.config.settings import nearest
from subagents.domain.run.parameter import leaves, parameters
from subagents.domain.run.spec import BATCH_RUNS_MAX, RunSpec
from subagents.errors import UsageError
from subagents.extensions.plans.result_items import ESCAPED, ITEM
from subagents.text import camel

MATRIX: Final = "matrix"
VARS: Final = "vars"
FOR_EACH: Final = ("for_each", "forEach")
EXCLUDE: Final = "exclude"
"""Within a matrix: the combinations that are left out."""
MATRIX_NAMES_MAX: Final = 64
COUNT_SHOWN_MAX: Final = 10**18
"""Of thousands of digits Python would show none."""
NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
EXPANDED_MAX: Final = 16 * 1024 * 1024
"""Characters of all that is made, with ``VALUE_COST`` for each value: a few lines could make more
than a machine holds."""
VALUE_COST: Final = 32
WITH_ITEMS: Final = ("task", "verification")
JUDGE: Final = "verification.judge."
OWN_SPELLING: Final = "for a plain ${{ write $${{"
_REFERENCE: Final = re.compile(r"\$\$\{\{|\$\{\{([^{}\n]*)\}\}|\$\{\{")
_TYPED: Final = frozenset(
    each.name
    for each in leaves(parameters(RunSpec))
    if isinstance(each.type, inspect.IntType | inspect.FloatType | inspect.BoolType)
)
"""Parameters that are no text: what a reference makes of them is read as a number, or true."""


class Step(NamedTuple):
    """One run, expanded."""

    where: str
    """For messages: ``runs[1] (3.12, linux)``."""
    content: object
    """As somebody might have written it, without its matrix."""


class Expansion:
    """The references of one plan, with the variables that they stand for."""

    def __init__(self, where: str, declared: object, given: Mapping[str, str]) -> None:
        """
        Args:
            where: The file, for messages.
            declared: The plan's ``vars``: names with their defaults; None = it has none.
            given: What was given for this time; stronger.

        Raises:
            UsageError: ``declared`` is no such table; names the field.
        """
        self._where = where
        found = {} if declared is None else declared
        if not isinstance(found, Mapping):
            raise UsageError(f'{where}: vars must be a table, such as {{ branch = "main" }}')
        self._declared = {
            _name(key, f"{where}: vars"): _text(value, f"{where}: vars.{key}")
            for key, value in found.items()
        }
        self._given = dict(given)
        self._used: set[str] = set()
        self._has_items = False
        """Whether the run that is looked at is one for each item of a list."""
        self._left = EXPANDED_MAX

    def steps(self, runs: Sequence[object]) -> tuple[Step, ...]:
        """All runs, each combination of a matrix in its place.

        A dependency on the label of a run with a matrix becomes one on each of its runs.

        Raises:
            UsageError: A matrix, a reference or a variable is wrong, or they are more than
                ``BATCH_RUNS_MAX`` runs; names the field.
        """
        labels: dict[str, list[str]] = {}
        made: list[Step] = []
        for index, content in enumerate(runs):
            for step in self._instances(content, f"runs[{index}]", labels):
                made.append(step)
                if len(made) > BATCH_RUNS_MAX:
                    raise UsageError(
                        f"{self._where}: runs must have at most {BATCH_RUNS_MAX} entries,"
                        " with those that a matrix makes"
                    )
        return tuple(
            Step(each.where, _after_all(each.content, labels, f"{self._where}: {each.where}"))
            for each in made
        )

    def outside(self, value: object, field: str) -> object:
        """What stands beside the runs, with its variables."""
        return self._put(value, {}, self._where, field, field)

    def check_given(self) -> None:
        """Afterwards: whether each given variable is one of the plan.

        Raises:
            UsageError: One is not.
        """
        known = sorted(self._used | set(self._declared))
        for name in self._given:
            if name not in known:
                names = ", ".join(known) or "none"
                raise UsageError(
                    f"{self._where} has no variable {name!r}{_guess(name, known)}; it has {names}",
                    details={"field": "--var"},
                )

    def _instances(self, content: object, at: str, labels: dict[str, list[str]]) -> Iterator[Step]:
        where = f"{self._where}: {at}"
        if not isinstance(content, Mapping):
            yield Step(at, content)
            return
        rest = {key: value for key, value in content.items() if key != MATRIX}
        has_matrix = MATRIX in content
        self._has_items = any(name in content for name in FOR_EACH)
        cells = _cells(content[MATRIX], f"{where}.{MATRIX}") if has_matrix else [{}]
        made = []
        for cell in cells:
            words = f" ({', '.join(cell.values())})" if has_matrix else ""
            found = self._put(rest, cell, f"{where}{words}", "", "", has_matrix=has_matrix)
            made.append((words, found if isinstance(found, dict) else {}))
        plain = [each.get("label") for _, each in made]
        # One that names its combination is used as it is.
        is_shared = has_matrix and (
            not _names_matrix(rest.get("label")) or len({*map(str, plain)}) < len(plain)
        )
        for (words, each), label in zip(made, plain, strict=True):
            if isinstance(label, str):
                each["label"] = f"{label}{words}" if is_shared else label
                known = labels.setdefault(label, [])
                if each["label"] not in known:
                    known.append(each["label"])
            yield Step(f"{at}{words}", each)

    def _put(
        self,
        value: object,
        cell: Mapping[str, str],
        where: str,
        path: str,
        told: str,
        *,
        has_matrix: bool = False,
    ) -> object:
        """A copy, references replaced, of what is at ``path``, which its file calls ``told``."""
        self._spend(VALUE_COST)
        if isinstance(value, Mapping):
            return {
                key: self._put(
                    inner,
                    cell,
                    where,
                    f"{path}.{camel(str(key))}" if path else json_name(str(key)),
                    f"{told}.{key}" if told else str(key),
                    has_matrix=has_matrix,
                )
                for key, inner in value.items()
            }
        if isinstance(value, list):
            return [
                self._put(
                    inner, cell, where, f"{path}[]", f"{told}[{index}]", has_matrix=has_matrix
                )
                for index, inner in enumerate(value)
            ]
        if not isinstance(value, str):
            return value
        self._spend(len(value))
        if "${{" not in value:
            return value

        is_of_items = self._has_items and path.partition(".")[0] in WITH_ITEMS

        def replaced(match: re.Match[str]) -> str:
            if match[0] == ESCAPED:
                return ESCAPED if is_of_items else "${{"
            if match[1] is None:
                raise UsageError(
                    f"{where}: {told}: a ${{{{ is not closed by }}}}", hint=OWN_SPELLING
                )
            if is_of_items and match[1].strip().partition(".")[0] == ITEM:
                return match[0]
            found = self._value(match[1].strip(), cell if has_matrix else None, f"{where}: {told}")
            self._spend(len(found))
            return found.replace("${{", ESCAPED) if is_of_items else found  # it is read again

        text = _REFERENCE.sub(replaced, value)
        return _typed(text) if path in _TYPED or path.removeprefix(JUDGE) in _TYPED else text

    def _value(self, reference: str, cell: Mapping[str, str] | None, where: str) -> str:
        space, _, name = reference.partition(".")
        shown = f"${{{{ {reference[:80]} }}}}"
        if space == VARS:
            self._used.add(name)
            found = self._given.get(name, self._declared.get(name))
            if found is None:
                guess = _guess(name, self._declared)
                raise UsageError(
                    f"{where}: {shown} has no value{guess}",
                    hint=f"--var {name[:80]}=VALUE, or a default in the plan's vars",
                )
            return found
        if space == MATRIX:
            if cell is None:
                raise UsageError(
                    f"{where}: {shown}: this run has no matrix",
                    hint="a dependency on all runs of a matrix names its label without `matrix`"
                    if where.rpartition(": ")[2].startswith(("after", "depends"))
                    else None,
                )
            if name not in cell:
                raise UsageError(
                    f"{where}: {shown}: its matrix has {', '.join(cell)}{_guess(name, cell)}"
                )
            return cell[name]
        if space == ITEM:
            raise UsageError(f"{where}: {shown} belongs in task or verification, with for_each")
        near = nearest(space, (MATRIX, VARS))
        raise UsageError(
            f"{where}: {shown} is neither matrix.NAME nor vars.NAME"
            + (f"; did you mean {near}.{name or 'NAME'}?" if near else ""),
            hint=OWN_SPELLING,
        )

    def _spend(self, characters: int) -> None:
        self._left -= characters
        if self._left < 0:
            raise UsageError(f"{self._where}: expanded, the plan is larger than 16 MiB")


def _names_matrix(label: object) -> bool:
    found = _REFERENCE.findall(label) if isinstance(label, str) else []
    return any(reference.strip().startswith(f"{MATRIX}.") for reference in found)


def _cells(matrix: object, where: str) -> list[dict[str, str]]:
    """The combinations of a matrix, the last name's values next to each other."""
    if isinstance(matrix, list):
        cells = [_cell(each, f"{where}[{index}]") for index, each in enumerate(matrix)]
        if len({frozenset(each) for each in cells}) > 1:
            raise UsageError(f"{where}: each table must have the same names")
    elif isinstance(matrix, Mapping):
        axes = {
            _name(key, where): _values(values, f"{where}.{key}")
            for key, values in matrix.items()
            if key != EXCLUDE
        }
        if len(axes) > MATRIX_NAMES_MAX:
            raise UsageError(f"{where} has {len(axes)} names; at most {MATRIX_NAMES_MAX} may be")
        count = math.prod(len(values) for values in axes.values())
        if count > BATCH_RUNS_MAX:
            shown = str(count) if count < COUNT_SHOWN_MAX else f"over {COUNT_SHOWN_MAX:,}"
            raise UsageError(f"{where} makes {shown} runs; a plan has at most {BATCH_RUNS_MAX}")
        left_out = _left_out(matrix.get(EXCLUDE, []), axes, f"{where}.{EXCLUDE}")
        combined = (
            dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())
        )
        cells = [
            cell for cell in combined if not any(each.items() <= cell.items() for each in left_out)
        ]
        cells = cells if axes else []
    else:
        raise UsageError(
            f'{where} must be a table of lists, such as {{ python = ["3.11", "3.12"] }}'
        )
    if not cells or not cells[0]:
        raise UsageError(f"{where} makes no run: it needs a name with at least one value")
    if len({tuple(each.items()) for each in cells}) < len(cells):
        raise UsageError(f"{where} has the same combination twice")
    return cells


def _left_out(
    tables: object, axes: Mapping[str, Sequence[str]], where: str
) -> list[dict[str, str]]:
    """What ``exclude`` names.

    Raises:
        UsageError: One of them fits no combination, so that it was meant to be another.
    """
    if not isinstance(tables, list):
        raise UsageError(f'{where} must be a list of tables, such as [{{ python = "3.11" }}]')
    if len(tables) > BATCH_RUNS_MAX:
        raise UsageError(f"{where} has {len(tables)} tables; at most {BATCH_RUNS_MAX} may be")
    found = [_cell(each, f"{where}[{index}]") for index, each in enumerate(tables)]
    for index, each in enumerate(found):
        for name, value in each.items():
            if name not in axes:
                raise UsageError(
                    f"{where}[{index}]: the matrix has no {name!r}{_guess(name, axes)}"
                )
            if value not in axes[name]:
                raise UsageError(f"{where}[{index}].{name}: {value!r} is none of its values")
        if not each:
            raise UsageError(f"{where}[{index}] is empty: it would leave out every combination")
    return found


def _cell(table: object, where: str) -> dict[str, str]:
    if not isinstance(table, Mapping):
        raise UsageError(f'{where} must be a table, such as {{ python = "3.12" }}')
    return {_name(key, where): _text(value, f"{where}.{key}") for key, value in table.items()}


def _values(values: object, where: str) -> list[str]:
    if not isinstance(values, list) or not values:
        raise UsageError(f"{where} must be a list of at least one value")
    return [_text(value, f"{where}[{index}]") for index, value in enumerate(values)]


def _name(key: object, where: str) -> str:
    if not isinstance(key, str) or not NAME.fullmatch(key):
        raise UsageError(
            f"{where}: {str(key)[:40]!r} is no name: letters, digits, _ and -, a letter first"
        )
    return key


def _text(value: object, where: str) -> str:
    if isinstance(value, float):
        # 3.10 is 3.1 by the time that anybody could see it.
        raise UsageError(f'{where}: put {value} in quotes, as it shall be written: "{value}"')
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int):
        return str(value)
    raise UsageError(f"{where} must be a text, a whole number, true or false")


def _typed(text: str) -> object:
    try:
        return msgspec.json.decode(text, type=bool | int | float)
    except msgspec.DecodeError:
        return text  # Its check says what it should be.


def _guess(name: str, known: Mapping[str, object] | Sequence[str]) -> str:
    near = nearest(name, known)
    return f"; did you mean {near!r}?" if near else ""


def _after_all(content: object, labels: Mapping[str, Sequence[str]], where: str) -> object:
    """With dependencies on each run that a label stands for."""
    if not isinstance(content, dict):
        return content
    found = dict(content)
    for key in ("after", "depends_on", "dependsOn"):
        named = found.get(key)
        names = [named] if isinstance(named, str) else named
        if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
            continue  # Its check says what it should be.
        if any(each in labels for each in names):
            once = dict.fromkeys(names)
            every = itertools.chain.from_iterable(labels.get(each, [each]) for each in once)
            found[key] = list(dict.fromkeys(every))
    for key in ("chain_after", "chainAfter", *FOR_EACH):
        given = found.get(key)
        name = given.get("run") if isinstance(given, Mapping) else given
        runs = labels.get(name, []) if isinstance(name, str) else []
        if len(runs) > 1:
            raise UsageError(
                f"{where}.{key} takes one run; {name!r} is {len(runs)}",
                hint="after waits for all of them",
            )
        if runs:
            found[key] = {**given, "run": runs[0]} if isinstance(given, Mapping) else runs[0]
    return found
