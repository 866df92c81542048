"""Write what restates ``RunSpec``: the table in docs/spawn-parameters.md and the Python keywords.

    python -m scripts.spawn_parameters [--check]

``--check`` changes nothing and exits with 1 when one of them is out of date.

Type checkers read no annotations that are made at run time, so the keywords are a written module.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec import inspect, json
from scripts.spawn_flags import FLAGS, WITHOUT_FLAG

from subagents.client.spawn_request import UNIT_UNSAID
from subagents.domain.run.parameter import SECTIONS, Parameter, leaves, parameters
from subagents.domain.run.spec import PATH_BYTES_MAX, TASK_BYTES_MAX, RunSpec

PAGE: Final = Path("docs/spawn-parameters.md")
MODULE: Final = Path("src/subagents/client/spawn_keywords.py")
BEGIN: Final = "<!-- parameters: written by `make docs` from src/subagents/domain/run/spec.py -->"
END: Final = "<!-- end of parameters -->"

HEADER: Final = '''\
"""The keywords of ``Orchestrator.spawn``; written by ``make docs`` from ``RunSpec``."""

from collections.abc import Mapping, Sequence
from typing import Literal, Required, TypedDict
'''
BEYOND_KEYWORDS: Final = ("task",)
"""Parameters with a place of their own in the method."""


def page(text: str) -> str:
    """The page with everything between its markers written anew.

    Raises:
        ValueError: A marker is missing.
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page needs the lines {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{tables()}\n\n{END}{after}"


def tables() -> str:
    """Every parameter, those inside others with the path to them, in a table for each section."""
    found: list[str] = []
    declared = list(leaves(parameters(RunSpec)))
    flags = {flag.parameter.name: flag for flag in FLAGS}
    for section in SECTIONS:
        found += [f"### {section}", ""]
        found += ["| parameter | type | default | flag | meaning |", "|---|---|---|---|---|"]
        for each in declared:
            if each.section == section:
                flag = flags.get(each.name)
                names = [*flag.names, flag.opposite] if flag else []
                spelled = ", ".join(f"`{name}`" for name in names if name)
                cells = (
                    f"`{each.name}`",
                    _allowed(each),
                    _default(each),
                    spelled or WITHOUT_FLAG[each.name],
                    each.description,
                )
                found.append("| " + " | ".join(cells) + " |")
        found.append("")
    return "\n".join(found).rstrip()


def _allowed(parameter: Parameter) -> str:
    if parameter.choices:
        return ", ".join(f"`{word}`" for word in parameter.choices)
    parts = [_FORMS.get(parameter.form or "") or _KINDS.get(type(parameter.type), "text")]
    if parameter.unit is not None:
        parts[0] += f" of {parameter.unit}"
        parts[0] += " or text like `5m`" if parameter.is_duration else ""
    if parameter.low is not None:
        high = " or more" if parameter.high is None else f" to {_plain(parameter.high)}"
        parts.append(f"{_plain(parameter.low)}{high}")
    if parameter.chars_max is not None:
        parts.append(f"at most {parameter.chars_max} characters")
    if parameter.items_max is not None:
        parts.append(f"at most {parameter.items_max} entries")
    return ", ".join(parts)


def _plain(number: float) -> str:
    return f"{number:,}" if isinstance(number, int) else f"{number:f}".rstrip("0")


_FORMS: Final = {
    "task": f"text, at most {TASK_BYTES_MAX // 1024} KiB",
    "path": f"path, at most {PATH_BYTES_MAX} bytes",
}
_KINDS: Final = {
    inspect.BoolType: "true or false",
    inspect.IntType: "integer",
    inspect.FloatType: "number",
    inspect.VarTupleType: "list of text",
    inspect.DictType: "object, true or false",
    inspect.StructType: "object",
}


def _default(parameter: Parameter) -> str:
    if parameter.is_required:
        return "required"
    if parameter.default in (None, ()):
        return "–"
    return f"`{json.encode(parameter.default).decode()}`".replace('"', "")


def module() -> str:
    """The typed keywords, one class for each struct of the declaration, innermost first."""
    return "\n\n\n".join([HEADER.rstrip(), *_classes("Spawn", parameters(RunSpec))]) + "\n"


def _classes(name: str, declared: Sequence[Parameter]) -> Iterator[str]:
    for each in declared:
        if each.inner:
            yield from _classes(_class_of(each), each.inner)
    lines = [
        f"class {name}Parameters(TypedDict, total=False):",
        f'    """The parameters of one {name.lower()}."""',
        "",
    ]
    for each in declared:
        if each.name not in BEYOND_KEYWORDS:
            lines.append(f"    {each.attribute}: {_annotation(each)}")
            unit = ", like ``500ms`` or ``5s``" if each.attribute in UNIT_UNSAID else ""
            lines.append(f'    """{each.description}{unit}."""')
    yield "\n".join(lines)


def _class_of(parameter: Parameter) -> str:
    return _struct(parameter).cls.__name__


def _struct(parameter: Parameter) -> inspect.StructType:
    kind = parameter.type
    inner = kind.item_type if isinstance(kind, inspect.VarTupleType) else kind
    if not isinstance(inner, inspect.StructType):
        raise TypeError(f"{parameter.name} holds no struct")
    return inner


def _annotation(parameter: Parameter) -> str:
    kind = parameter.type
    if parameter.choices:
        known = f"Literal[{', '.join(json.encode(word).decode() for word in parameter.choices)}]"
    elif parameter.inner:
        known = f"{_class_of(parameter)}Parameters"
    elif parameter.like is not None:
        # Quoted: that class may come later, or hold this one.
        named = {each.name: each for each in parameters(RunSpec)}
        return f'"{_class_of(named[parameter.like])}Parameters | None"'
    else:
        known = {
            inspect.BoolType: "bool",
            inspect.IntType: "int",
            inspect.FloatType: "float",
            inspect.VarTupleType: "str",
            inspect.DictType: "Mapping[str, object] | bool",
        }.get(type(kind), "str")
    if parameter.is_duration:
        known = "str" if parameter.attribute in UNIT_UNSAID else f"{known} | str"
    if parameter.is_list:
        known = f"Sequence[{known}]"
    if parameter.is_required:
        return f"Required[{known}]"
    return f"{known} | None" if parameter.default is None else known


def main(arguments: Sequence[str]) -> int:
    """``[--check]``; returns the exit code."""
    written = {PAGE: page(PAGE.read_text(encoding="utf-8")), MODULE: module()}
    stale = [
        file
        for file, text in written.items()
        if not file.exists() or file.read_text(encoding="utf-8") != text
    ]
    for file in stale:
        if "--check" in arguments:
            sys.stderr.write(f"{file} is out of date: run `make docs`\n")
        else:
            file.write_text(written[file], encoding="utf-8")
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
