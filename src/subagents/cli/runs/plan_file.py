"""Reads a batch of runs from a TOML, YAML or JSON file.

The file has ``runs``: tables with the spawn parameters, in snake_case or camelCase. Runs name each
other by label in ``depends_on`` and ``chain_after``.

Source: 5-surfaces §2 (``plan run``), 2-lifecycle §3 (batch).
"""

import difflib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from subagents.domain.run.spec import (
    BATCH_RUNS_MAX,
    Artifact,
    Budget,
    Contract,
    RunSpec,
)
from subagents.errors import UsageError

FILE_BYTES_MAX: Final = 16 * 1024 * 1024

_NESTED: Final[Mapping[tuple[type[msgspec.Struct], str], type[msgspec.Struct]]] = {
    (RunSpec, "verification"): Contract,
    (RunSpec, "budget"): Budget,
    (Contract, "artifacts"): Artifact,
}
_LISTS: Final = {"dependsOn", "retryOn", "toolsAllow", "toolsDeny", "tags"}
"""Where a single text stands for a list of one."""


def read_plan(file: Path) -> tuple[RunSpec, ...]:
    """The runs of a plan file, in its order.

    Raises:
        UsageError: Names the file and, inside it, the field; nothing was sent.
    """
    content = _parse(file, _read(file))
    where = str(file)
    if isinstance(content, dict):
        unknown = [str(key) for key in content if key != "runs"]
        if unknown:
            raise UsageError(f"{where}: unknown key {unknown[0]!r}; a plan has only `runs`")
        content = content.get("runs")
    if not isinstance(content, list) or not content:
        raise UsageError(
            f"{where}: `runs` must be a list of at least one run",
            hint='TOML: [[runs]] with task = "…" below, once for each run',
        )
    if len(content) > BATCH_RUNS_MAX:
        raise UsageError(
            f"{where}: runs must have at most {BATCH_RUNS_MAX} entries, not {len(content)}"
        )
    return tuple(_spec(each, f"{where}: runs[{index}]") for index, each in enumerate(content))


def _read(file: Path) -> str:
    try:
        if not file.is_file():
            kind = "is not a regular file" if file.exists() else "does not exist"
            raise UsageError(f"plan file {file} {kind}")
        if file.stat().st_size > FILE_BYTES_MAX:
            raise UsageError(f"plan file {file} is larger than {FILE_BYTES_MAX} bytes")
        return file.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"cannot read plan file {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"plan file {file} is not valid UTF-8 (byte {error.start})") from error


def _parse(file: Path, text: str) -> object:
    match file.suffix.lower():
        case ".toml":
            try:
                return tomllib.loads(text)
            except (tomllib.TOMLDecodeError, RecursionError) as error:
                raise UsageError(f"{file}: {error}") from error
        case ".json":
            try:
                return msgspec.json.decode(text)
            except (msgspec.DecodeError, RecursionError) as error:
                raise UsageError(f"{file}: {error}") from error
        case ".yaml" | ".yml":
            return _yaml(file, text)
        case suffix:
            raise UsageError(
                f"{file}: a plan is .toml, .yaml, .yml or .json, not {suffix or 'without suffix'}"
            )


def _yaml(file: Path, text: str) -> object:
    from ruamel.yaml import YAML  # noqa: PLC0415  only for those who write YAML
    from ruamel.yaml.error import YAMLError  # noqa: PLC0415

    try:
        loaded: object = YAML(typ="safe", pure=True).load(text)
    except (YAMLError, ValueError, RecursionError) as error:
        raise UsageError(f"{file}: {' '.join(str(error).split())}") from error
    return loaded


def _spec(content: object, where: str) -> RunSpec:
    if not isinstance(content, dict):
        raise UsageError(f"{where} must be a table, not {_shown(content)}")
    if "task" not in content:
        raise UsageError(f"{where}.task is missing")
    values = _camel(content, RunSpec, where)
    try:
        return msgspec.convert(values, RunSpec)
    except msgspec.ValidationError as error:
        reason, _, path = str(error).partition(" - at `$")
        raise UsageError(f"{where}{path.rstrip('`')}: {reason}") from error


def _camel(
    content: Mapping[object, object], kind: type[msgspec.Struct], where: str
) -> dict[str, object]:
    """The fields of one struct under their wire names; unknown ones are refused."""
    wire = {}
    for field in msgspec.structs.fields(kind):
        wire[field.name] = wire[field.encode_name] = field.encode_name
    values: dict[str, object] = {}
    for key, value in content.items():
        name = wire.get(str(key))
        if name is None:
            near = difflib.get_close_matches(str(key), list(wire), n=1, cutoff=0.6)
            guess = f"; did you mean {near[0]!r}?" if near else ""
            raise UsageError(f"{where}: unknown key {str(key)!r}{guess}")
        if name in values:
            raise UsageError(f"{where}: {name} is given twice, in both spellings")
        values[name] = _value(name, value, kind, f"{where}.{name}")
    return values


def _value(name: str, value: object, kind: type[msgspec.Struct], where: str) -> object:
    nested = _NESTED.get((kind, name))
    if nested is not None and isinstance(value, dict):
        return _camel(value, nested, where)
    if nested is not None and isinstance(value, list):
        return [
            _camel(each, nested, f"{where}[{index}]") if isinstance(each, dict) else each
            for index, each in enumerate(value)
        ]
    if name in _LISTS and isinstance(value, str):
        return [value]
    return value


def _shown(value: object) -> str:
    return "nothing" if value is None else f"{type(value).__name__} {str(value)[:40]!r}"
