"""The items of a result, and the run that ``for_each`` makes of each. Pure.

``${{ item }}`` in the task and the contract is the item, ``${{ item.NAME }}`` a field of one that
is an object; ``$${{`` is a plain ``${{``. In commands an item is one word, whatever is in it.
"""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

import msgspec

from subagents.domain.rules.parameter_checks import check_spec
from subagents.domain.run.spec import Contract, OnDependencyFailure, RunSpec
from subagents.domain.run.values import replace
from subagents.errors import UsageError
from subagents.extensions.plans import item_expansion as of_map
from subagents.text import cut

ITEM: Final = "item"
ESCAPED: Final = "$${{"
SHOWN_MAX: Final = 60
OF_ALL: Final = (
    *("for_each", "gate", "budget", "chain_after", "fallback_agent_id"),
    *("dependency_timeout_seconds", "idempotency_key"),
)
"""Parameters that are for all items together, and for none of their runs."""
_REFERENCE: Final = re.compile(r"\$\$\{\{|\$\{\{((?:[^{}\n]|\{[./]*\})*)\}\}|\$\{\{")
"""One of the braces within is a part of the item, as in ``map``: ``${{ item{/} }}``."""


def items_of(text: str) -> list[object]:
    """The items of a text: those of a JSON list, else its lines without the empty ones.

    The list may stand in a block of Markdown. A line that is a JSON object is that object.

    Raises:
        UsageError: It begins like JSON, and is no list.
    """
    plain = text.strip()
    if plain.startswith("```") and plain.endswith("```") and "\n" in plain:
        plain = plain.partition("\n")[2].removesuffix("```").strip()
    if plain.startswith("["):
        try:
            return msgspec.json.decode(plain, type=list[object])
        except (msgspec.DecodeError, RecursionError) as error:
            raise UsageError(f"begins like a JSON list and is none: {error}") from error
    if _object(plain) is not None:
        raise UsageError("is one JSON object and no list", hint="let it answer with the list alone")
    lines = [each.removesuffix("\r") for each in plain.split("\n") if each.strip()]
    return [_object(each) or each for each in lines]


def _object(text: str) -> dict[str, object] | None:
    # Of a million lines each refusal would cost.
    with suppress(msgspec.DecodeError, RecursionError):
        if text.lstrip().startswith("{"):
            return msgspec.json.decode(text, type=dict[str, object])
    return None


def require_item(spec: RunSpec, where: str = "") -> None:
    """Refuse a task that would be the same for all items.

    Raises:
        UsageError: It names none; ``where`` is put before it.
    """
    if not any(_is_item((each[1] or "").strip()) for each in _REFERENCE.finditer(spec.task)):
        text = f"{where}the task has no ${{{{ item }}}} where the item belongs"
        raise UsageError(text, details={"field": "task"})


def specs_of(spec: RunSpec, items: Sequence[object]) -> tuple[RunSpec, ...]:
    """One run for each item, in their order: without what is for all of them together.

    Args:
        spec: With ``for_each``.
        items: Texts or values of JSON.

    Raises:
        UsageError: They are too many, or one of them makes no run; says which.
    """
    most = 0 if spec.for_each is None else spec.for_each.max_items
    if len(items) > most:
        raise UsageError(f"has {len(items)} items, more than for_each.max_items = {most}")
    require_item(spec)
    once = dict.fromkeys(OF_ALL)
    one = replace(spec, depends_on=(), on_dependency_failure=OnDependencyFailure.RUN, **once)
    return of_map.told_apart([_spec(one, item, at) for at, item in enumerate(items, 1)])


def _spec(spec: RunSpec, item: object, at: int) -> RunSpec:
    where = f"item {at}"
    if not _text(item).strip():
        raise UsageError(f"{where} is empty")

    def placed(template: str, path: str) -> str:
        quoted = shlex.quote if path in of_map.COMMANDS else str
        return _REFERENCE.sub(lambda found: _value(found, item, where, quoted), template)

    made = replace(_with(spec, placed), label=of_map.label_of(spec.label, _short(item)))
    check_spec(made, field=lambda parameter: f"{where}: {parameter.name}")
    return made


def _value(found: re.Match[str], item: object, where: str, quoted: Callable[[str], str]) -> str:
    if found[0] == ESCAPED:
        return "${{"
    name = (found[1] or "").strip()
    if not _is_item(name):
        raise UsageError(f"{cut(found[0], SHOWN_MAX)} is neither item nor item.NAME")
    rest = name.removeprefix(ITEM)
    if rest in of_map.PARTS:
        return quoted(of_map.PARTS[rest](_text(item)))
    for part in rest.split(".")[1:]:
        if not isinstance(item, Mapping) or part not in item:
            has = ", ".join(map(str, item)) if isinstance(item, Mapping) else "no fields"
            raise UsageError(f"{where} has no {part!r}; it has {cut(has, SHOWN_MAX)}")
        item = item[part]
    return quoted(_text(item))


def _is_item(name: str) -> bool:
    return name == ITEM or name.startswith(f"{ITEM}.") or name.removeprefix(ITEM) in of_map.PARTS


def _text(item: object) -> str:
    text = item if isinstance(item, str) else msgspec.json.encode(item).decode()
    if "\0" in text:
        raise UsageError("an item has a NUL byte, which no command can have")
    return text


def _short(item: object) -> str:
    """What tells an item apart in a label: of an object its plain values."""
    if not isinstance(item, Mapping):
        return _text(item)
    plain = [_text(each) for each in item.values() if not isinstance(each, Mapping | list)]
    return ", ".join(plain) or _text(item)


def from_map(spec: RunSpec) -> RunSpec:
    """The same with the ``{}`` of ``map`` as references to an item."""

    def placed(template: str, _: str) -> str:
        plain = template.replace("${{", ESCAPED).replace("{}", "${{ item }}")
        return of_map.PLACEHOLDER.sub(lambda found: f"${{{{ {ITEM}{found[0]} }}}}", plain)

    return _with(spec, placed)


def _with(spec: RunSpec, placed: Callable[[str, str], str]) -> RunSpec:
    judged = of_map.put(msgspec.to_builtins(spec.verification), placed, "verification")
    verification = msgspec.convert(judged, Contract | None)
    return replace(spec, task=placed(spec.task, "task"), verification=verification)
