"""``config show``, ``validate``, ``trust`` and ``schema``."""

import dataclasses
import os
from pathlib import Path
from typing import Annotated

from subagents.cli import output
from subagents.cli.connection import caller_cwd, is_worker, paths
from subagents.cli.flags import Json, Parameter, Yes
from subagents.errors import Forbidden, NotFound


def show(
    key: Annotated[
        str | None, Parameter(help="Show only this key or section.", metavar="KEY")
    ] = None,
    /,
    *,
    origin: Annotated[bool, Parameter(help="Show where each value comes from.")] = False,
    json: Json = False,
) -> None:
    """Show the effective configuration: defaults, user file, project file and environment.

    For example:

        subagents config show --origin

        subagents config show agents.defaults --json
    """
    from subagents.config.layers import HIDDEN, load  # noqa: PLC0415

    config = load(Path(caller_cwd()), os.environ, paths=paths())
    leaves = [
        leaf
        for leaf in config.leaves()
        if key is None or leaf.key == key or leaf.key.startswith(f"{key}.")
    ]
    if not leaves:
        raise NotFound(f"nothing is set at {key}", hint="see: subagents config show")
    warnings = [*config.warnings, *config.for_agents().ignored]
    if json:
        values = [{"key": leaf.key, "value": leaf.shown, "origin": leaf.origin} for leaf in leaves]
        files = [str(file) for file in config.files]
        output.document({"files": files, "warnings": warnings, "values": values})
        return
    import msgspec  # noqa: PLC0415

    for leaf in leaves:
        value = HIDDEN if leaf.is_secret else msgspec.json.encode(leaf.shown).decode()
        where = f"  # {leaf.origin}" if origin else ""
        output.line(f"{leaf.key} = {value}{where}")
    for warning in warnings:
        output.note(f"warning: {warning}")


def validate(
    file: Annotated[
        Path | None,
        Parameter(help="The file to check. Default: all files in effect here.", metavar="FILE"),
    ] = None,
    /,
    *,
    json: Json = False,
) -> None:
    """Check configuration files. An error names the file, the line and the key; the exit code is 2.

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
    files, warnings = [str(each) for each in config.files], [*config.warnings, *config.ignored]
    if json:
        output.document({"valid": True, "files": files, "warnings": warnings})
        return
    for warning in warnings:
        output.note(f"warning: {warning}")
    output.line(f"valid: {', '.join(files) or 'no file; the defaults apply'}")


def trust(
    file: Annotated[
        Path | None,
        Parameter(help="Default: the project file in effect here.", metavar="FILE"),
    ] = None,
    /,
    *,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Trust a project's subagents.toml until it changes.

    Until a project file is trusted, it cannot allow agents more than your own file
    does. Read it first: it can name programs to run.

    For example:

        subagents config trust

        subagents config trust ./subagents.toml --yes
    """
    from subagents.config.config_files import find_files  # noqa: PLC0415
    from subagents.config.trust import trust  # noqa: PLC0415

    # A worker could write the file first, and so allow its own kind whatever it wants.
    if is_worker():
        raise Forbidden("a worker cannot trust a file", guardrail="role")
    home = paths()
    found = file.absolute() if file is not None else None
    if found is None:
        projects = find_files(Path(caller_cwd()), home.config_file, os.environ.get("HOME"))[1]
        found = projects[0].file if projects else None
    if found is None or not found.exists():
        raise NotFound(f"there is no file {found}" if found else "there is no project file here")
    if not output.is_confirmed(f"Trust {found}?", yes=yes):
        output.note("Nothing was changed.")
        return
    trust(home, found)
    if json:
        output.document({"file": str(found), "trusted": True})
    else:
        output.line(f"Trusted until it changes: {found}")


def schema(*, json: Json = False) -> None:
    """Print the JSON Schema of subagents.toml, for editors.

    For example:

        subagents config schema > subagents.schema.json

        subagents config schema --json
    """
    from subagents.config.schema import json_schema  # noqa: PLC0415

    del json  # It is JSON either way.
    output.document(json_schema())
