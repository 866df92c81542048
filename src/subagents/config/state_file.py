"""Small JSON files in the state directory, in which the user's answers are remembered by name."""

from pathlib import Path
from typing import TypeVar

import msgspec

from subagents.config.paths import Paths
from subagents.durable_files import replace_file
from subagents.errors import ConfigError

T = TypeVar("T")


def read_entries(file: Path, form: type[T], *, hint: str) -> dict[str, T]:
    """The entries by name, the oldest first; empty when there is no such file.

    Args:
        file: In the state directory.
        form: Of each entry.
        hint: What removing the file would mean, for the message.

    Raises:
        ConfigError: It cannot be read.
    """
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, form])  # type: ignore[valid-type]
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"cannot read {file}: {error}", hint=hint) from error


def write_entries(paths: Paths, file: Path, entries: dict[str, T], *, entries_max: int) -> None:
    """Replace the file; of too many entries the oldest are forgotten.

    Raises:
        ConfigError: It cannot be written; the file is as before.
    """
    kept = dict(list(entries.items())[-entries_max:])
    paths.ensure()
    try:
        # Durably: what was taken back must not be there again after a loss of power.
        replace_file(file, msgspec.json.encode(kept))
    except OSError as error:
        raise ConfigError(f"cannot write {file}: {error.strerror}") from error
