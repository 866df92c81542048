"""Where configuration comes from: built in, files, environment, flags; each a checked layer.

A layer is checked by itself, before it is merged: only then can a message name the file or
variable that is wrong.
"""

import hashlib
import itertools
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from subagents.config import keys
from subagents.config.files import documents
from subagents.config.files.documents import BadDocument
from subagents.config.files.text_files import read_text
from subagents.errors import ConfigError
from subagents.text import cut

PREFIX: Final = "SUBAGENTS_"
SEPARATOR: Final = "__"
DEFAULT: Final = "default"
"""The origin of a value that no file, variable or flag set."""
FILE_BYTES_MAX: Final = 1024 * 1024
"""A collection of a hundred agents with their instructions is less."""
PROBLEMS_MAX: Final = 20
"""How many problems of one layer are shown."""
PROBLEM_CHARS_MAX: Final = 1_000
NAME_CHARS_MAX: Final = 1_000
"""The longest key, with its dots; longer ones are not looked up."""

Tree = dict[str, object]


class Layer(msgspec.Struct):
    """What one source says; every key of it is known and every value fits."""

    origin: str
    """`default`, the file's path, the variable's name, or `flag <key>`."""
    values: Tree
    base: Path | None = None
    """Relative paths in it start here."""
    digest: str = ""
    """SHA-256 (hex) of a file's text."""
    text: str = ""
    """The content of a file."""


def built_in(environ: Mapping[str, str]) -> Layer:
    """What there is without any file: a caller, and one worker that runs shell lines."""
    import shutil  # noqa: PLC0415  its archive formats cost more than all of this package

    shell = "bash" if shutil.which("bash", path=environ.get("PATH")) else "sh"
    return Layer(
        DEFAULT,
        {
            "agents": {
                "main": {"description": "The caller", "subagents": {"allow_agents": []}},
                "command": {
                    "runtime": "command",
                    "command": [shell, "-c", "{task}"],
                    "description": f"Runs the task as a {shell} script",
                },
            }
        },
    )


def digest(text: str) -> str:
    """Stands for exactly this content of a file."""
    return hashlib.sha256(text.encode()).hexdigest()


def read(file: Path, text: str | None = None) -> Layer:
    """The layer of one file.

    Args:
        file: Names it in messages.
        text: Its content, when that was read already.

    Raises:
        ConfigError: Names the file, the line or key, and what is allowed.
    """
    text = text_of(file) if text is None else text
    try:
        values = documents.toml(text)
    except BadDocument as error:
        hint = "correct the TOML of that line"
        raise ConfigError(error.at(str(file)), hint=hint) from error
    problems = _first(keys.check(values))
    if problems:
        raise _refusal(str(file), problems, text)
    return Layer(str(file), values, file.parent, digest(text), text)


def text_of(file: Path) -> str:
    """The content of a file of configuration.

    Raises:
        ConfigError: It is no readable, regular, bounded file of text.
    """
    return read_text(file, bytes_max=FILE_BYTES_MAX, refusal=ConfigError)


def from_environment(
    environ: Mapping[str, str], known_ids: Iterable[str], cwd: Path | None
) -> Iterator[Layer]:
    ids = {name.replace("-", "_"): name for name in known_ids} | {name: name for name in known_ids}
    # Sorted, so that a variable for a table comes before those for its keys.
    for name in sorted(environ):
        if name.startswith(PREFIX) and SEPARATOR in name.removeprefix(PREFIX):
            yield assignment(name, _segments(name, ids), environ[name], cwd)


def _segments(variable: str, ids: Mapping[str, str]) -> list[str]:
    """The key a variable sets: lower case, except for names that the tree leaves free in case.

    An id or a header with `-` is spelled with `_`, as variables cannot have the former.
    """
    parts = variable.removeprefix(PREFIX).split(SEPARATOR)
    lower = [part.lower() for part in parts]
    match lower:
        case [table, name, "env", _, *_]:
            of = ids.get(name, name) if table == "agents" else name
            return [table, of, "env", SEPARATOR.join(parts[3:])]
        case ["agents", agent, *rest]:
            return ["agents", ids.get(agent, agent), *rest]
        case [*table, "headers", name]:
            return [*table, "headers", name.replace("_", "-")]
        case _:
            return lower


def assignment(origin: str, path: list[str], value: object, base: Path | None) -> Layer:
    """One key of the environment or a flag.

    Text is taken as a TOML value when that fits the key, as it stands when only that does.
    """
    candidates = [value]
    if isinstance(value, str):
        candidates = [*_toml_value(value), value]
    # As TOML first: `8` is a number for a key that takes one, and text for one that takes text.
    refused: list[list[keys.KeyProblem]] = []
    for candidate in candidates:
        tree: Tree = {path[-1]: candidate}
        for part in reversed(path[:-1]):
            tree = {part: tree}
        problems = _first(keys.check(tree))
        if not problems:
            return Layer(origin, tree, base)
        refused.append(problems)
    raise _refusal(origin, refused[0])


def _toml_value(text: str) -> list[object]:
    try:
        parsed = documents.toml(f"value = {text}")
    except BadDocument:
        return []
    # "1\nother = 2" parses too, but is not one value.
    return [parsed["value"]] if list(parsed) == ["value"] else []


def _first(problems: Iterator[keys.KeyProblem]) -> list[keys.KeyProblem]:
    """As many as are shown, and one more where there are more: each is looked up and guessed at."""
    return list(itertools.islice(problems, PROBLEMS_MAX + 1))


def _refusal(origin: str, problems: list[keys.KeyProblem], text: str = "") -> ConfigError:
    """One line for each problem; ``text`` is a file's, in which the lines are looked up."""
    shown = problems[:PROBLEMS_MAX]
    lines = _lines(text)
    places = [_place(origin, problem.key, lines) for problem in shown]
    told = [
        f"{at}: {cut(each.text, PROBLEM_CHARS_MAX)}" for at, each in zip(places, shown, strict=True)
    ]
    if len(problems) > len(shown):
        told.append(f"{origin}: and more like these")
    return ConfigError(
        "\n".join(told),
        hint=problems[0].hint,
        details={"origin": origin, "keys": [cut(each.key, NAME_CHARS_MAX) for each in shown]},
    )


def _place(origin: str, key: str, lines: Mapping[str, int]) -> str:
    # Inside an inline table the line is that of the table.
    parts = key.split(".")
    names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    line = next((lines[name] for name in names if name in lines), None)
    return origin if line is None else f"{origin}:{line}"


def _lines(text: str) -> dict[str, int]:
    """Where a file first names each key, as a person would find it.

    ``tomllib`` keeps no lines, and what this finds is only shown: within a text of several lines
    it takes for a key what is none.
    """
    found: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        if stripped.startswith("["):
            name, _, behind = stripped.lstrip("[").partition("]")
            if behind.lstrip("]").lstrip()[:1] in {"", "#"}:
                table = _plain(name)
                found.setdefault(table, number)
            continue
        name, is_assigned, _ = stripped.partition("=")
        if is_assigned and len(name) <= NAME_CHARS_MAX:
            found.setdefault(".".join(filter(None, (table, _plain(name)))), number)
    return found


def _plain(name: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in name.split("."))


def absolute_cwds(layer: Layer, environ: Mapping[str, str]) -> None:
    """An agent's directory means the same wherever it is read: make it absolute, by its file."""
    agents = subtable(layer.values, "agents")
    for agent_id in agents:
        agent = subtable(agents, agent_id)
        if isinstance(agent.get("cwd"), str):
            key = f"agents.{agent_id}.cwd"
            agent["cwd"] = _absolute_directory(str(agent["cwd"]), key, layer, environ)


def _absolute_directory(cwd: str, key: str, layer: Layer, environ: Mapping[str, str]) -> str:
    home = environ.get("HOME")
    if home and (cwd == "~" or cwd.startswith("~/")):
        return home + cwd[1:]
    if os.path.isabs(cwd):  # noqa: PTH117  text in, text out
        return cwd
    if layer.base is None:
        raise ConfigError(
            f'{layer.origin}: {key} must be an absolute path, not "{cwd}"',
            hint="there is no project directory here that it could start from",
        )
    return os.path.abspath(layer.base / cwd)  # noqa: PTH100  Path.resolve would follow links


def subtable(values: Tree, name: str) -> Tree:
    """The table of that name, created when missing; every layer was checked, so it is one."""
    found = values.setdefault(name, {})
    if not isinstance(found, dict):
        raise TypeError(f"{name} is not a table")
    return found
