"""What ``import subagents`` offers, from its docstrings: docs/reference/python.md.

Drawn where the site is built (``scripts.docs_site``), and in no commit.
"""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from scripts.marked_pages import cell, drawn_anew

import subagents
from subagents.errors import SubagentsError

PAGE: Final = "docs/reference/python.md"
BEGIN: Final = "<!-- names: drawn by `make site` from the docstrings -->"
END: Final = "<!-- end of names -->"
WIDTH: Final = 90
_PART: Final = re.compile(r"^(Args|Returns|Yields|Raises):$", re.MULTILINE)
_ITEM: Final = re.compile(r"^    (\*{0,2}\w+): ")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def section(name: str) -> Iterator[str]:
    """One name: what it is, and each of its methods."""
    found: Any = getattr(subagents, name)
    yield f"## {name}"
    tree = ast.parse(textwrap.dedent(inspect.getsource(found))).body[0]
    if isinstance(tree, ast.ClassDef):
        yield from described(inspect.getdoc(found) or "")
        for each in tree.body:
            if isinstance(each, Function) and not each.name.startswith("_"):
                yield f"### {name}.{each.name}"
                yield from method(each)
    elif isinstance(tree, Function):
        yield from method(tree)


def method(node: Function) -> Iterator[str]:
    """How to call it, what it does, its arguments and errors."""
    decorators = {ast.unparse(each) for each in node.decorator_list}
    arguments = node.args
    if "staticmethod" not in decorators:
        arguments.args = [each for each in arguments.args if each.arg not in ("self", "cls")]
    yield f"```py\n{call(node, decorators)}\n```"
    yield from described(ast.get_docstring(node) or "")


def call(node: Function, decorators: set[str]) -> str:
    """Its signature, a line for each parameter where one line is too long."""
    if "property" in decorators:
        return f"{node.name}: {ast.unparse(node.returns) if node.returns else 'object'}"
    begin = "async with " if "asynccontextmanager" in decorators else ""
    begin = "await " if isinstance(node, ast.AsyncFunctionDef) and not begin else begin
    end = f" -> {ast.unparse(node.returns)}" if node.returns and begin != "async with " else ""
    if _is_generator(node):
        begin, end = "async for each in ", ""
    text = re.sub(r"(?<=[\w\])])=(?=[^=])", " = ", ast.unparse(node.args))
    line = f"{begin}{node.name}({text}){end}"
    if len(line) <= WIDTH:
        return line
    parts = re.split(r", (?=[*\w]+(?::|,|$| =)|\*,)", text)
    inner = "".join(f"    {part},\n" for part in parts)
    return f"{begin}{node.name}(\n{inner}){end}"


def _is_generator(node: Function) -> bool:
    is_context = any("contextmanager" in ast.unparse(each) for each in node.decorator_list)
    return not is_context and any(isinstance(each, ast.Yield) for each in ast.walk(node))


def described(text: str) -> Iterator[str]:
    """A docstring as Markdown: its paragraphs, and a table for each of its lists."""
    head, *rest = _PART.split(text)
    yield from (_plain(each) for each in head.strip().split("\n\n") if each.strip())
    for title, body in zip(rest[::2], rest[1::2], strict=True):
        items = list(_items(body))
        if not items:
            yield f"{title}: {_plain(textwrap.dedent(body))}"
            continue
        rows = [f"| `{name}` | {cell(_plain(about))} |" for name, about in items]
        shown = {"Args": "argument", "Raises": "raises"}.get(title, title.lower())
        yield "\n".join([f"| {shown} | |", "|---|---|", *rows])


def _items(body: str) -> Iterator[tuple[str, str]]:
    """The items of a list in a docstring, their lines joined."""
    items: list[list[str]] = []
    for line in body.strip("\n").splitlines():
        if match := _ITEM.match(line):
            items.append([match[1], line[match.end() :]])
        elif items and line.strip():
            items[-1][1] += f" {line.strip()}"
    yield from ((name, about) for name, about in items)


def _plain(text: str) -> str:
    return " ".join(text.replace("``", "`").split())


def drawn(page: str) -> str:
    """``page`` with the names of today."""
    parts: list[str] = []
    errors, documents = [], []
    for name in subagents.__all__:
        found = getattr(subagents, name)
        if inspect.isclass(found) and issubclass(found, SubagentsError):
            errors.append(name)
        elif inspect.isclass(found) and issubclass(found, msgspec.Struct):
            documents.append(f"[`{name}`](http.md#{name.lower()})")
        else:
            parts += section(name)
    parts += ["## Errors", f"{listed(errors)}: see [errors](errors.md)."]
    parts += ["## Answers", f"{', '.join(documents)}, and what methods answer besides: frozen"]
    parts[-1] += " structs with the fields of the [documents](http.md#documents), in snake_case."
    return drawn_anew(page, BEGIN, END, *parts)


def listed(names: list[str]) -> str:
    """Names in code, with commas."""
    return ", ".join(f"`{each}`" for each in names)
