"""Where configuration comes from: built in, files, environment, flags; each a checked layer.

A layer is checked by itself, before it is merged: only then can a message name the file or
variable that is wrong.
"""

import hashlib
import os
import re
import stat
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from subagents.config import keys
from subagents.errors import ConfigError

PREFIX: Final = "SUBAGENTS_"
SEPARATOR: Final = "__"
DEFAULT: Final = "default"
"""Origin of a value that nobody set."""
FILE_BYTES_MAX: Final = 256 * 1024
DOTS_MAX: Final = 200
"""In one line, between words: ``tomllib`` takes time with the square of the parts of a key, and the
daemon waits for it."""
SYNTAX_POSITION: Final = re.compile(r" \(at line (\d+), column (\d+)\)$")

TABLE: Final = re.compile(r"\s*\[+([^\[\]]+)\]+\s*(?:#.*)?$")
_DOT: Final = re.compile(r"""[\w"'-][ \t]{0,100}\.(?=[ \t]{0,100}[\w"'-])""")
ASSIGNMENT: Final = re.compile(r"\s*([\w\-.\"' ]+?)\s*=")

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
    """A file's."""


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
    """By which exactly this content of a file is known again."""
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
    for number, line in enumerate(text.split("\n"), 1):
        if line.count(".") > DOTS_MAX and len(_DOT.findall(line)) > DOTS_MAX:
            raise ConfigError(
                f"{file}:{number}: more than {DOTS_MAX} names with dots between them",
                hint="break the line up; no key has so many parts",
            )
    try:
        values = tomllib.loads(text)
    except ValueError as error:
        # A TOMLDecodeError, or Python's own refusal of an integer of thousands of digits.
        at = SYNTAX_POSITION.search(str(error))
        where = f":{at[1]}:{at[2]}" if at else f":{text.count(chr(10)) + 1}"
        reason = (
            str(error)[: at.start()] if at else str(error).removesuffix(" (at end of document)")
        )
        raise ConfigError(
            f"{file}{where}: {reason}", hint="correct the TOML syntax of that line"
        ) from error
    except RecursionError as error:
        raise ConfigError(f"{file}: nested too deeply") from error
    problems = list(keys.check(values))
    if problems:
        raise _refusal(str(file), problems, text)
    return Layer(str(file), values, file.parent, digest(text), text)


def text_of(file: Path) -> str:
    """The content of a file of configuration.

    Raises:
        ConfigError: It is no readable, regular, bounded file of text.
    """
    try:
        found = file.stat()
        if not stat.S_ISREG(found.st_mode):
            kind = "a directory" if stat.S_ISDIR(found.st_mode) else "not a regular file"
            raise ConfigError(f"{file} is {kind}", hint="put a TOML file there, or move it away")
        if found.st_size > FILE_BYTES_MAX:
            raise ConfigError(f"{file} is larger than {FILE_BYTES_MAX} bytes ({found.st_size})")
        content = file.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"cannot read {file}: {error.strerror}",
            hint="make it readable for you, or move it away",
        ) from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"{file}:{line}: not valid UTF-8 (byte 0x{content[error.start]:02x})",
            hint="save the file as UTF-8",
        ) from error


def from_environment(
    environ: Mapping[str, str], known_ids: Iterable[str], cwd: Path | None
) -> Iterator[Layer]:
    ids = {name.replace("-", "_"): name for name in known_ids} | {name: name for name in known_ids}
    # Sorted, so that a variable for a table comes before those for its keys.
    for name in sorted(environ):
        if name.startswith(PREFIX) and SEPARATOR in name.removeprefix(PREFIX):
            yield assignment(name, _segments(name, ids), environ[name], cwd)


def _segments(name: str, ids: Mapping[str, str]) -> list[str]:
    """The key a variable sets: lower case, except for names that the tree leaves free in case.

    An id or a header with `-` is spelled with `_`, as variables cannot have the former.
    """
    parts = name.removeprefix(PREFIX).split(SEPARATOR)
    lower = [part.lower() for part in parts]
    match lower:
        case ["agents", agent, "env", _, *_]:
            return ["agents", ids.get(agent, agent), "env", SEPARATOR.join(parts[3:])]
        case ["agents", agent, *rest]:
            return ["agents", ids.get(agent, agent), *rest]
        case ["telemetry", "headers", *rest] if rest:
            return ["telemetry", "headers", SEPARATOR.join(rest).replace("_", "-")]
        case _:
            return lower


def assignment(origin: str, path: list[str], value: object, base: Path | None) -> Layer:
    """One key of the environment or a flag.

    Text is taken as a TOML value when that fits the key, as it stands when only that does.
    """
    candidates = [value]
    if isinstance(value, str):
        candidates = [*_toml_value(value), value]
    refused: list[list[keys.KeyProblem]] = []
    for candidate in candidates:
        tree: Tree = {path[-1]: candidate}
        for part in reversed(path[:-1]):
            tree = {part: tree}
        problems = list(keys.check(tree))
        if not problems:
            return Layer(origin, tree, base)
        refused.append(problems)
    raise _refusal(origin, refused[0])


def _toml_value(text: str) -> list[object]:
    try:
        parsed = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return []
    # "1\nother = 2" parses too, but is not one value.
    return [parsed["value"]] if list(parsed) == ["value"] else []


def _refusal(origin: str, problems: list[keys.KeyProblem], text: str = "") -> ConfigError:
    """One line for each problem; ``text`` is a file's, in which the lines are looked up."""
    lines = [_line_of(problem.key, text) for problem in problems]
    places = [origin if line is None else f"{origin}:{line}" for line in lines]
    return ConfigError(
        "\n".join(f"{at}: {each.text}" for at, each in zip(places, problems, strict=True)),
        hint=problems[0].hint,
        details={"origin": origin, "keys": [problem.key for problem in problems]},
    )


def _line_of(key: str, text: str) -> int | None:
    """Where a file sets the key, as a person would find it; None = it is not seen at once.

    ``tomllib`` keeps no lines, and what this finds is only shown.
    """
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := TABLE.match(line):
            name = table = _plain(header[1])
        elif assigned := ASSIGNMENT.match(line):
            name = ".".join(filter(None, (table, _plain(assigned[1]))))
            if key.startswith(f"{name}."):  # inside an inline table
                return number
        else:
            continue
        if name == key:
            return number
    return None


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
