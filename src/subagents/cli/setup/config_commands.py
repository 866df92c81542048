"""``config``: what is in effect here, whether files are valid, and which are trusted."""

import dataclasses
import os
from pathlib import Path
from typing import Annotated

from subagents.cli import output
from subagents.cli.connection import caller_cwd, is_worker
from subagents.cli.connection import paths as own_paths
from subagents.cli.flags import Json, Parameter, Yes, chosen, refusal, refuse_unused
from subagents.errors import Forbidden, NotFound


def config(
    what: Annotated[
        str | None,
        Parameter(
            help="A key or section to show, or the file to check or trust. Default: all of them.",
            metavar="KEY|FILE",
        ),
    ] = None,
    /,
    *,
    origin: Annotated[bool, Parameter(help="Show where each value comes from.")] = False,
    check: Annotated[bool, Parameter(help="Say whether the files in effect are valid.")] = False,
    trust: Annotated[
        bool, Parameter(help="Trust this project's file, as it is now, until it changes.")
    ] = False,
    paths: Annotated[bool, Parameter(help="Show every directory and file in use.")] = False,
    schema: Annotated[
        bool, Parameter(help="Print the JSON Schema of subagents.toml, for editors.")
    ] = False,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Show the effective configuration: defaults, user file, project file and environment.

    With --check an error names the file, the line and the key, and the exit code is 2. Until a
    project file is trusted, it cannot allow agents more than your own file does. Read it first: it
    can name programs to run.

    For example:

        subagents config agents.defaults --origin

        subagents config --check ./subagents.toml

        subagents config --trust
    """
    view = chosen(check=check, trust=trust, paths=paths, schema=schema)
    if view:
        refuse_unused(f"does not go with {view}", origin=origin)
    if not trust:
        refuse_unused("needs --trust", yes=yes)
    if what is not None and (paths or schema):
        raise refusal(view, f"takes no {what!r}")
    file = None if what is None else Path(what)
    if check:
        _check(file, json=json)
    elif trust:
        _trust(file, yes=yes, json=json)
    elif paths:
        from subagents.cli.setup.paths_command import show_paths  # noqa: PLC0415  as needed

        show_paths(json=json)
    elif schema:
        from subagents.config.schema import json_schema  # noqa: PLC0415

        output.document(json_schema())  # it is JSON either way
    else:
        _show(what, with_origin=origin, json=json)


def _show(key: str | None, *, with_origin: bool, json: bool) -> None:
    from subagents.config.layers import HIDDEN, load  # noqa: PLC0415

    config = load(Path(caller_cwd()), os.environ, paths=own_paths())
    leaves = [
        leaf
        for leaf in config.leaves()
        if key is None or leaf.key == key or leaf.key.startswith(f"{key}.")
    ]
    if not leaves:
        raise NotFound(f"nothing is set at {key}", hint="see: subagents config")
    warnings = [*config.warnings, *config.for_agents().ignored]
    if json:
        values = [{"key": leaf.key, "value": leaf.shown, "origin": leaf.origin} for leaf in leaves]
        files = [str(file) for file in config.files]
        output.document({"files": files, "warnings": warnings, "values": values})
        return
    import msgspec  # noqa: PLC0415

    for leaf in leaves:
        value = HIDDEN if leaf.is_secret else msgspec.json.encode(leaf.shown).decode()
        where = f"  # {leaf.origin}" if with_origin else ""
        output.line(f"{leaf.key} = {value}{where}")
    for warning in warnings:
        output.note(f"warning: {warning}")


def _check(file: Path | None, *, json: bool) -> None:
    from subagents.config.layers import load  # noqa: PLC0415

    if file is None:
        config = load(Path(caller_cwd()), os.environ, paths=own_paths())
    else:
        if not file.exists():
            raise NotFound(f"there is no file {file}")
        alone = dataclasses.replace(own_paths(), config_file=file.absolute())
        config = load(None, os.environ, paths=alone)
    files, warnings = [str(each) for each in config.files], [*config.warnings, *config.ignored]
    if json:
        output.document({"valid": True, "files": files, "warnings": warnings})
        return
    for warning in warnings:
        output.note(f"warning: {warning}")
    output.line(f"valid: {', '.join(files) or 'no file; the defaults apply'}")


def _trust(file: Path | None, *, yes: bool, json: bool) -> None:
    from subagents.config.config_files import find_files  # noqa: PLC0415
    from subagents.config.trust import trust  # noqa: PLC0415

    # A worker could write the file first, and so allow its own kind whatever it wants.
    if is_worker():
        raise Forbidden("a worker cannot trust a file", guardrail="role")
    home = own_paths()
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
