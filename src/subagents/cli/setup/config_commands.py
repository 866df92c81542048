"""``config show``, ``validate``, ``trust`` and ``schema``."""

import dataclasses
import os
from pathlib import Path
from typing import Annotated

from subagents.cli import output
from subagents.cli.connection import caller_cwd, paths
from subagents.cli.flags import Json, Parameter
from subagents.errors import EXIT_OK, Forbidden, NotFound


def show(
    key: Annotated[
        str | None, Parameter(help="Show only this key or section.", metavar="KEY")
    ] = None,
    /,
    *,
    origin: Annotated[bool, Parameter(help="Show where each value comes from.")] = False,
    json: Json = False,
) -> int:
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
    if json:
        output.document(
            {
                "files": [str(file) for file in config.files],
                "warnings": [*config.warnings, *config.for_agents().ignored],
                "values": [
                    {
                        "key": leaf.key,
                        "value": leaf.shown,
                        "origin": leaf.origin,
                    }
                    for leaf in leaves
                ],
            }
        )
        return EXIT_OK
    import msgspec  # noqa: PLC0415

    for leaf in leaves:
        value = HIDDEN if leaf.is_secret else msgspec.json.encode(leaf.shown).decode()
        where = f"  # {leaf.origin}" if origin else ""
        output.line(f"{leaf.key} = {value}{where}")
    for warning in (*config.warnings, *config.for_agents().ignored):
        output.note(f"warning: {warning}")
    return EXIT_OK


def validate(
    file: Annotated[
        Path | None,
        Parameter(help="The file to check. Default: all files in effect here.", metavar="FILE"),
    ] = None,
    /,
    *,
    json: Json = False,
) -> int:
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
    if json:
        output.document(
            {
                "valid": True,
                "files": [str(each) for each in config.files],
                "warnings": [*config.warnings, *config.ignored],
            }
        )
        return EXIT_OK
    for warning in (*config.warnings, *config.ignored):
        output.note(f"warning: {warning}")
    listed = ", ".join(str(each) for each in config.files) or "no file; the defaults apply"
    output.line(f"valid: {listed}")
    return EXIT_OK


def trust(
    file: Annotated[
        Path | None,
        Parameter(help="Default: the project file in effect here.", metavar="FILE"),
    ] = None,
    /,
    *,
    yes: Annotated[
        bool, Parameter(name=("--yes", "-y"), help="Do not ask for confirmation.")
    ] = False,
    json: Json = False,
) -> int:
    """Trust a project's subagents.toml until it changes.

    Until a project file is trusted, it cannot allow agents more than your own file
    does. Read it first: it can name programs to run.

    For example:

        subagents config trust

        subagents config trust ./subagents.toml --yes
    """
    from subagents.config.config_files import find_files  # noqa: PLC0415
    from subagents.config.trust import trust  # noqa: PLC0415

    if os.environ.get("SUBAGENTS_RUN_ID"):
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
        return EXIT_OK
    trust(home, found)
    if json:
        output.document({"file": str(found), "trusted": True})
    else:
        output.line(f"Trusted until it changes: {found}")
    return EXIT_OK


def schema(*, json: Json = False) -> int:
    """Print the JSON Schema of subagents.toml, for editors.

    For example:

        subagents config schema > subagents.schema.json

        subagents config schema --json
    """
    from subagents.config.schema import json_schema  # noqa: PLC0415

    del json  # It is JSON either way.
    output.document(json_schema())
    return EXIT_OK
