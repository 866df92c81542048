"""Makes one run of each item: ``{}`` in the parameters stands for it, as in xargs and fd."""

import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Final

import msgspec

from subagents.domain.rules.parameter_checks import check_spec
from subagents.domain.run.spec import BATCH_RUNS_MAX, LABEL_CHARS_MAX, RunSpec
from subagents.domain.run.values import replace
from subagents.errors import UsageError
from subagents.text import one_line

PARTS: Final[dict[str, Callable[[str], str]]] = {
    "{}": lambda item: item,
    "{.}": lambda item: str(PurePath(item).with_suffix("")) if PurePath(item).name else item,
    "{/}": lambda item: PurePath(item).name,
    "{//}": lambda item: str(PurePath(item).parent),
    "{/.}": lambda item: PurePath(item).stem,
}
"""The whole item; without its suffix; its name; its directory; its name without the suffix."""
COMMANDS: Final = frozenset({"task", "verification.commands[]"})
"""Where a shell reads the text, and an item is one word, whatever is in it."""
PLACEHOLDER: Final = re.compile("|".join(re.escape(each) for each in PARTS))


def runs_of_items(spec: RunSpec, items: Sequence[str]) -> tuple[RunSpec, ...]:
    """One run for each item, in their order.

    Args:
        spec: With placeholders, at least one of them in its task.
        items: File names or any other texts; in the task and in verification commands they are
            quoted for the shell.

    Raises:
        UsageError: There is no item, one is empty, they are too many, or the task names none.
    """
    if not items:
        raise UsageError(
            "there are no items",
            hint="subagents map 'wc -l {}' *.py, or --each FILE with one on each line",
        )
    if len(items) > BATCH_RUNS_MAX:
        raise UsageError(f"map takes at most {BATCH_RUNS_MAX} items, not {len(items)}")
    if not PLACEHOLDER.search(spec.task):
        raise UsageError(
            "the task has no {} where the item belongs",
            hint=f"subagents map {shlex.quote(spec.task + ' {}')} …",
            details={"field": "task"},
        )
    for item in items:
        if not item.strip() or "\0" in item:
            raise UsageError(f"{item[:60]!r} is no item")
    plain = msgspec.to_builtins(spec)
    return told_apart([_run(plain, item) for item in items])


def told_apart(runs: list[RunSpec]) -> tuple[RunSpec, ...]:
    """These, of which no two have the same label."""
    taken: set[str | None] = set()
    for index, run in enumerate(runs):
        if run.label in taken:
            end = f" #{index + 1}"
            runs[index] = replace(run, label=f"{run.label}"[: LABEL_CHARS_MAX - len(end)] + end)
        taken.add(runs[index].label)
    return tuple(runs)


def _run(plain: dict[str, object], item: str) -> RunSpec:
    def placed(text: str, path: str) -> str:
        quoted = shlex.quote if path in COMMANDS else str
        return PLACEHOLDER.sub(lambda found: quoted(PARTS[found[0]](item)), text)

    found = put(plain, placed, "")
    spec = msgspec.convert(found, RunSpec)
    label = plain.get("label")
    if not isinstance(label, str) or not PLACEHOLDER.search(label):
        spec = replace(spec, label=label_of(spec.label, item))
    check_spec(spec, field=lambda parameter: f"{parameter.name} for {item[:60]!r}")
    return spec


def label_of(label: str | None, item: str) -> str:
    """One that tells the runs apart; of a long path it is the end that does."""
    before = "" if label is None else f"{label[: LABEL_CHARS_MAX // 2]} "
    room = LABEL_CHARS_MAX - len(before)
    shown = one_line(item, None)
    return before + (shown if len(shown) <= room else f"…{shown[1 - room :]}")


def put(value: object, placed: Callable[[str, str], str], path: str) -> object:
    """``value`` with every text as ``placed`` makes it, which is given its path, too."""
    match value:
        case dict():
            return {
                key: inner
                if key == "schema"
                else put(inner, placed, f"{path}.{key}" if path else str(key))
                for key, inner in value.items()
            }
        case list() | tuple():
            return [put(inner, placed, f"{path}[]") for inner in value]
        case str():
            return placed(value, path)
        case _:
            return value
