"""``init``, ``config``, ``db`` and ``service``: what is done once, or seldom.

Source: 5-surfaces §1, §2, §5.
"""

import dataclasses
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from subagents.cli import output
from subagents.cli.connection import caller_cwd, paths
from subagents.cli.flags import Json
from subagents.errors import (
    EXIT_FAILED,
    EXIT_OK,
    ConfigError,
    Forbidden,
    NotFound,
    StoreUnavailable,
    SubagentsError,
    Unavailable,
    UsageError,
)
from subagents.text import one_line

if TYPE_CHECKING:  # it looks for programs: only `init` needs it
    from subagents.config.program_catalog import Found

HIDDEN: Final = "(hidden)"
UNIT_NAME: Final = "subagents.service"
SYSTEMCTL_TIMEOUT_S: Final = 30


def init(
    *,
    yes: Annotated[
        bool,
        Parameter(name=["--yes", "-y", "--force"], help="Ask nothing; replace what is there."),
    ] = False,
    json: Json = False,
) -> int:
    """Write a subagents.toml for what is found on this machine.

    An existing file is replaced only after you said so; the old one is kept
    beside it as subagents.toml.bak. Agents that call from here may use what it
    says until it is changed; then again after: subagents config trust.

    For example:

        subagents init

        subagents init --yes --json
    """
    from subagents.config.program_catalog import detect  # noqa: PLC0415
    from subagents.config.starter import starter_text, usable  # noqa: PLC0415

    file = Path(caller_cwd()) / "subagents.toml"
    found = detect(os.environ)
    allowed = usable(found)
    kept: Path | None = None
    if file.is_symlink() or file.exists():
        if not file.is_file():
            raise UsageError(f"{file} is in the way: it is not a file")
        if not output.is_confirmed(f"{file} exists. Replace it?", yes=yes):
            output.note("Nothing was written.")
            return EXIT_OK
        kept = file.with_name("subagents.toml.bak")
    try:
        if kept is not None:
            shutil.copyfile(file, kept)
        file.write_text(starter_text(os.environ, found), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write {file}: {error.strerror}") from error
    if not os.environ.get("SUBAGENTS_RUN_ID"):
        from subagents.config.trust import trust  # noqa: PLC0415

        trust(paths(), file)
    if json:
        output.document(
            {
                "file": str(file),
                "backup": None if kept is None else str(kept),
                "found": [
                    {
                        "name": each.program.name,
                        "runtime": each.program.runtime,
                        "place": each.place,
                        "login": each.login,
                    }
                    for each in found
                ],
                "allowed": list(allowed),
            }
        )
        return EXIT_OK
    output.line(f"Wrote {file}")
    if kept is not None:
        output.line(f"The old one is {kept}")
    _show_found(found)
    listed = ", ".join(allowed)
    output.line(
        f"Agents that call over MCP may spawn: {listed}"
        if allowed
        else "Agents that call over MCP may spawn none; to change that: allow_agents in the file"
    )
    output.line("Next: subagents run 'echo hello' · subagents doctor · subagents mcp install NAME")
    return EXIT_OK


def _show_found(found: "Sequence[Found]") -> None:
    if not found:
        output.line("Found here: no agent programs, but the agent `command` runs anything")
        return
    output.line("Found here:")
    for each in found:
        is_known = each.login is not None
        login = f"login: {each.login}" if is_known else f"log in: {each.program.login}"
        output.line(f"  {each.program.name:<17} {each.program.title} · {each.place} · {login}")


# -- config ---------------------------------------------------------------------------------------


def config_show(
    key: Annotated[
        str | None, Parameter(help="Only this key, or those below it.", metavar="KEY")
    ] = None,
    /,
    *,
    origin: Annotated[bool, Parameter(help="Say where each value comes from.")] = False,
    json: Json = False,
) -> int:
    """The configuration that holds here: defaults, user file, project file, environment.

    For example:

        subagents config show --origin

        subagents config show agents.defaults --json
    """
    from subagents.config.layers import load  # noqa: PLC0415

    config = load(Path(caller_cwd()), os.environ, paths=paths())
    leaves = [
        leaf
        for leaf in config.leaves()
        if key is None or leaf.key == key or leaf.key.startswith(f"{key}.")
    ]
    if not leaves:
        raise NotFound(f"nothing is set at {key}", hint="see: subagents config show")
    if json:
        output.document(
            {
                "files": [str(file) for file in config.files],
                "warnings": [*config.warnings, *config.for_agents().ignored],
                "values": [
                    {
                        "key": leaf.key,
                        "value": HIDDEN if leaf.is_secret else leaf.value,
                        "origin": leaf.origin,
                    }
                    for leaf in leaves
                ],
            }
        )
        return EXIT_OK
    import msgspec  # noqa: PLC0415

    for leaf in leaves:
        value = HIDDEN if leaf.is_secret else msgspec.json.encode(leaf.value).decode()
        where = f"  # {leaf.origin}" if origin else ""
        output.line(f"{leaf.key} = {value}{where}")
    for warning in (*config.warnings, *config.for_agents().ignored):
        output.note(f"warning: {warning}")
    return EXIT_OK


def config_validate(
    file: Annotated[
        Path | None,
        Parameter(help="A file to check. Default: all that hold here.", metavar="FILE"),
    ] = None,
    /,
    *,
    json: Json = False,
) -> int:
    """Check the configuration; exit code 2 names the file, the line and the key.

    For example:

        subagents config validate

        subagents config validate ./subagents.toml --json
    """
    from subagents.config.layers import load  # noqa: PLC0415

    if file is None:
        config = load(Path(caller_cwd()), os.environ, paths=paths())
    else:
        if not file.exists():
            raise NotFound(f"there is no file {file}")
        alone = dataclasses.replace(paths(), config_file=file.absolute())
        config = load(None, os.environ, paths=alone)
    if json:
        output.document(
            {
                "valid": True,
                "files": [str(each) for each in config.files],
                "warnings": list(config.warnings),
            }
        )
        return EXIT_OK
    for warning in config.warnings:
        output.note(f"warning: {warning}")
    listed = ", ".join(str(each) for each in config.files) or "no file; the defaults hold"
    output.line(f"valid: {listed}")
    return EXIT_OK


def config_trust(
    file: Annotated[
        Path | None,
        Parameter(help="Default: the project file that holds here.", metavar="FILE"),
    ] = None,
    /,
    *,
    yes: Annotated[bool, Parameter(name=["--yes", "-y"], help="Ask nothing.")] = False,
    json: Json = False,
) -> int:
    """Let agents use all of a project's subagents.toml, until it is changed.

    Without that a project file can define and narrow, but not allow agents more
    than your own file does. Read it first: it can name programs to run.

    For example:

        subagents config trust

        subagents config trust ./subagents.toml --yes
    """
    from subagents.config.sources import find_files  # noqa: PLC0415
    from subagents.config.trust import trust  # noqa: PLC0415

    if os.environ.get("SUBAGENTS_RUN_ID"):
        raise Forbidden("a worker cannot trust a file", guardrail="role")
    home = paths()
    found = file.absolute() if file is not None else None
    if found is None:
        found = find_files(Path(caller_cwd()), home.config_file)[1]
    if found is None or not found.exists():
        raise NotFound(f"there is no file {found}" if found else "no project file holds here")
    if not output.is_confirmed(f"Let agents use all that {found} says?", yes=yes):
        output.note("Nothing was changed.")
        return EXIT_OK
    trust(home, found)
    if json:
        output.document({"file": str(found), "trusted": True})
    else:
        output.line(f"Trusted until it is changed: {found}")
    return EXIT_OK


def config_schema(*, json: Json = False) -> int:
    """The JSON Schema of subagents.toml, for editors.

    For example:

        subagents config schema > subagents.schema.json

        subagents config schema --json
    """
    from subagents.config.schema import json_schema  # noqa: PLC0415

    del json  # It is JSON either way.
    output.document(json_schema())
    return EXIT_OK


# -- database -------------------------------------------------------------------------------------


def db_check(*, json: Json = False) -> int:
    """Read the whole database and check it; also while the daemon runs.

    For example:

        subagents db check

        subagents db check --json
    """
    problems = database_problems()
    home = paths()
    if json:
        output.document(
            {"database": str(home.database), "ok": not problems, "problems": list(problems)}
        )
    elif problems:
        for problem in problems:
            output.line(problem)
        output.note("  hint: restore a copy made by `subagents db backup`")
    else:
        output.line(f"ok: {home.database}")
    return EXIT_FAILED if problems else EXIT_OK


def database_problems() -> list[str]:
    """What the database finds in itself.

    Raises:
        StoreUnavailable: There is none, or it cannot be read.
    """
    from subagents.store.sqlite.sqlite_store import SqliteStore  # noqa: PLC0415

    store = SqliteStore(paths().database)
    store.open_readonly()
    try:
        return list(store.check())
    finally:
        store.close()


def db_backup(
    file: Annotated[
        Path | None, Parameter(help="A new file. Default: one with the time, here.", metavar="FILE")
    ] = None,
    /,
    *,
    json: Json = False,
) -> int:
    """Copy the database to a new file; also while the daemon runs.

    For example:

        subagents db backup

        subagents db backup /backup/subagents.db --json
    """
    import sqlite3  # noqa: PLC0415

    from subagents.store.sqlite.sqlite_store import SqliteStore  # noqa: PLC0415

    target = file or Path(caller_cwd()) / time.strftime("subagents-%Y%m%d-%H%M%S.db")
    if target.exists():
        raise UsageError(f"{target} exists; a backup needs a new file", details={"field": "FILE"})
    store = SqliteStore(paths().database)
    store.open_readonly()
    try:
        # Created first, closed to others: it holds the same tasks and results.
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        store.backup(str(target))
    except OSError as error:
        raise StoreUnavailable(f"cannot write {target}: {error.strerror}") from error
    except (sqlite3.Error, SubagentsError) as error:
        target.unlink(missing_ok=True)
        raise StoreUnavailable(f"the backup to {target} failed: {error}") from error
    finally:
        store.close()
    size = target.stat().st_size
    if json:
        output.document({"file": str(target), "bytes": size})
    else:
        output.line(f"{target} ({size} bytes)")
    return EXIT_OK


# -- service --------------------------------------------------------------------------------------


def service_install(
    *,
    dry_run: Annotated[bool, Parameter(name="--dry-run", help="Print the unit only.")] = False,
    json: Json = False,
) -> int:
    """Let systemd keep the daemon running for this user, also after a login.

    Stopping the service leaves the workers alone.

    For example:

        subagents service install --dry-run

        subagents service install
    """
    text = unit_text()
    file = _unit_file()
    if dry_run:
        output.document({"file": str(file), "unit": text}) if json else output.data(text)
        return EXIT_OK
    _require_systemd()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Unavailable(f"cannot write {file}: {error.strerror}") from error
    _systemctl("daemon-reload")
    _systemctl("enable", "--now", UNIT_NAME)
    if json:
        output.document({"file": str(file), "installed": True})
    else:
        output.line(f"Installed {file}; the daemon runs as {UNIT_NAME}.")
        output.line("To run without a login, too: loginctl enable-linger")
    return EXIT_OK


def service_uninstall(*, json: Json = False) -> int:
    """Take the systemd service away; runs and their results stay.

    For example:

        subagents service uninstall

        subagents service uninstall --json
    """
    file = _unit_file()
    was_there = file.exists()
    if was_there:
        _require_systemd()
        _systemctl("disable", "--now", UNIT_NAME)
        file.unlink()
        _systemctl("daemon-reload")
    if json:
        output.document({"file": str(file), "uninstalled": was_there})
    else:
        output.line(f"Removed {file}." if was_there else "The service was not installed.")
        output.line(f"State stays in {paths().state_dir}; delete it by hand if you want to.")
    return EXIT_OK


def unit_text() -> str:
    """The systemd user unit; ``KillMode=process`` keeps workers alive when it stops."""
    home = os.environ.get("SUBAGENTS_HOME")
    environment = ""
    if home:
        absolute = str(paths().state_dir.parent)
        environment = f'Environment="SUBAGENTS_HOME={_quoted(absolute)}"\n'
    return f"""\
[Unit]
Description=subagents: durable, verified delegation between agents
Documentation=man:subagents(1)

[Service]
ExecStart={_exec_word(sys.executable)} -m subagents serve
{environment}WorkingDirectory=/
KillMode=process
Restart=on-failure
RestartSec=1

[Install]
WantedBy=default.target
"""


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")


def _exec_word(text: str) -> str:
    plain = text.replace("%", "%%").replace("$", "$$")
    return plain if shlex.quote(text) == text else f'"{_quoted(text)}"'


def _unit_file() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "systemd" / "user" / UNIT_NAME


def _require_systemd() -> None:
    hint = "start it by hand: subagents up; or let another supervisor run: subagents serve"
    if shutil.which("systemctl") is None:
        raise Unavailable("this machine has no systemd (systemctl is not on PATH)", hint=hint)
    if _run("systemctl", "--user", "show-environment").returncode != 0:
        raise Unavailable("systemd does not run for this user here", hint=hint)


def _systemctl(*arguments: str) -> None:
    done = _run("systemctl", "--user", *arguments)
    if done.returncode != 0:
        said = one_line(done.stderr or done.stdout, chars_max=400)
        raise Unavailable(f"systemctl --user {' '.join(arguments)} failed: {said}")


def _run(*argv: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            argv, capture_output=True, text=True, check=False, timeout=SYSTEMCTL_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{argv[0]} cannot be used: {error}") from error
