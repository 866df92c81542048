"""The worker's own tools: what they are called, what they take, and how they are run.

A tool that is not to be used is not made at all: no rule has to refuse it later.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Annotated, Final, NamedTuple, TypeVar

import msgspec

from subagents.extensions.llm.agent_loop.tools import file_tools as files
from subagents.extensions.llm.agent_loop.tools import search_tool as search
from subagents.extensions.llm.agent_loop.tools.path_bounds import PathBounds, ToolRefused
from subagents.extensions.llm.agent_loop.tools.shell_tool import Shell

SHELL_S_MAX: Final = 3600.0
T = TypeVar("T", bound=msgspec.Struct)

Schema = dict[str, object]


class Returned(NamedTuple):
    """What a tool gives back."""

    text: str
    is_error: bool = False
    exit_code: int | None = None
    handed_over: tuple[str, ...] = ()
    """Messages of the inbox that are consumed once this is kept."""


class LoopTool(NamedTuple):
    """One tool, as the model sees it and as it is run."""

    name: str
    description: str
    schema: Schema
    run: Callable[[Mapping[str, object], str], Awaitable[Returned]]
    """Takes the arguments and the id of the call. Raises Refused, with words for the model."""
    is_alone: bool = True
    """Not in parallel with another one: it changes files, or sees what others change."""


_Positive = Annotated[int, msgspec.Meta(ge=1)]


class _Read(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    path: str
    offset: _Positive = 1
    limit: _Positive = files.READ_LINES_MAX


class _Write(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    path: str
    content: str


class _Edit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    path: str
    old: str
    new: str
    all: bool = False


class _List(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    path: str = "."
    recursive: bool = False


class _Grep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pattern: str
    path: str = "."
    glob: str | None = None
    ignore_case: bool = False


class _Shell(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    command: str
    timeout_seconds: Annotated[float, msgspec.Meta(gt=0, le=SHELL_S_MAX)] | None = None


def own_tools(
    names: Iterable[str], bounds: PathBounds, shell: Shell, *, shell_timeout_s: float
) -> list[LoopTool]:
    """The tools of these names, and no others.

    Args:
        names: Of ``llm_assignment.OWN_TOOLS``.
        bounds: Where they work.
        shell: Runs commands.
        shell_timeout_s: Of a command that asks for no other.
    """
    made = {
        "read": LoopTool(
            "read",
            "Read a text file in the working directory; lines are numbered.",
            _schema({"path": "string", "offset": "integer", "limit": "integer"}, "path"),
            _blocking(_Read, partial(_read, bounds)),
        ),
        "write": LoopTool(
            "write",
            "Write a whole file in the working directory, with the directories it needs.",
            _schema({"path": "string", "content": "string"}, "path", "content"),
            _blocking(_Write, partial(_write, bounds)),
        ),
        "edit": LoopTool(
            "edit",
            "Replace text in a file. old must be there exactly, and once unless all is true.",
            _schema(
                {"path": "string", "old": "string", "new": "string", "all": "boolean"},
                *("path", "old", "new"),
            ),
            _blocking(_Edit, partial(_edit, bounds)),
        ),
        "list": LoopTool(
            "list",
            "List a directory.",
            _schema({"path": "string", "recursive": "boolean"}),
            _blocking(_List, partial(_list, bounds)),
        ),
        "grep": LoopTool(
            "grep",
            "Search files for a regular expression; gives file:line:text.",
            _schema(
                {"pattern": "string", "path": "string", "glob": "string", "ignore_case": "boolean"},
                "pattern",
            ),
            _blocking(_Grep, partial(_grep, bounds)),
        ),
        "shell": LoopTool(
            "shell",
            "Run a command line in the working directory; gives its output and exit code. It gets"
            f" no input and is killed after timeout_seconds (default {shell_timeout_s:g}).",
            _schema({"command": "string", "timeout_seconds": "number"}, "command"),
            partial(_shell, shell, shell_timeout_s),
        ),
    }
    return [made[name] for name in names]


def _schema(properties: Mapping[str, str], *required: str) -> Schema:
    return {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in properties.items()},
        "required": list(required),
        "additionalProperties": False,
    }


def _blocking(
    kind: type[T], work: Callable[[T], str]
) -> Callable[[Mapping[str, object], str], Awaitable[Returned]]:
    async def run(arguments: Mapping[str, object], call_id: str) -> Returned:
        del call_id
        asked = _asked(arguments, kind)
        try:
            return Returned(await asyncio.to_thread(work, asked))
        except OSError as error:
            raise ToolRefused(f"{type(error).__name__}: {error}") from error

    return run


def _asked(arguments: Mapping[str, object], kind: type[T]) -> T:
    try:
        # Models write numbers and booleans as text at times.
        return msgspec.convert(dict(arguments), kind, strict=False)
    except msgspec.ValidationError as error:
        raise ToolRefused(f"arguments: {error}") from error


def _read(bounds: PathBounds, asked: _Read) -> str:
    return files.read(bounds, asked.path, offset=asked.offset, limit=asked.limit)


def _write(bounds: PathBounds, asked: _Write) -> str:
    return files.write(bounds, asked.path, asked.content)


def _edit(bounds: PathBounds, asked: _Edit) -> str:
    return files.edit(bounds, asked.path, asked.old, asked.new, is_all=asked.all)


def _list(bounds: PathBounds, asked: _List) -> str:
    return files.listed(bounds, asked.path, is_deep=asked.recursive)


def _grep(bounds: PathBounds, asked: _Grep) -> str:
    return search.grep(
        bounds, asked.pattern, path=asked.path, glob=asked.glob, ignore_case=asked.ignore_case
    )


async def _shell(
    shell: Shell, timeout_s: float, arguments: Mapping[str, object], call_id: str
) -> Returned:
    del call_id
    asked = _asked(arguments, _Shell)
    if "\0" in asked.command:
        raise ToolRefused("command: no command holds a NUL character")
    try:
        ran = await shell.run(asked.command, timeout_s=asked.timeout_seconds or timeout_s)
    except OSError as error:
        raise ToolRefused(f"command: {error}") from error
    notes = [f"[{ran.note}]"] if ran.note else []
    notes += [f"[exit code {ran.exit_code}]"] if ran.exit_code else []
    # Before the output: the end of it is what people are shown.
    text = "\n".join(filter(None, [*notes, ran.output.rstrip("\n")]))
    return Returned(text or "(no output)", is_error=ran.exit_code != 0, exit_code=ran.exit_code)
