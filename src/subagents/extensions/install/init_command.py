"""``init``: write a configuration for what is found on this machine."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from subagents.cli import output
from subagents.cli.connection import caller_cwd, is_worker, paths
from subagents.cli.flags import Json, Parameter, refusal, refuse_unused
from subagents.errors import EXIT_OK, ConfigError, UsageError

if TYPE_CHECKING:  # it looks for programs: only `init` needs it
    from subagents.extensions.conversation.found_programs import Found


def init(
    place: Annotated[
        Path | None,
        Parameter(
            help="With --from claude-agents a directory of .md files, or one; else a file.",
            metavar="FILE",
        ),
    ] = None,
    /,
    *,
    from_: Annotated[
        Literal["claude-agents", "openclaw"] | None,
        Parameter(name="--from", help="Add the agents that another program has."),
    ] = None,
    dry_run: Annotated[
        bool, Parameter(help="With --from: show what would be written, and write nothing.")
    ] = False,
    yes: Annotated[
        bool,
        Parameter(name=("--yes", "-y", "--force"), help="Do not ask; replace an existing file."),
    ] = False,
    json: Json = False,
) -> int:
    """Create a subagents.toml with the agent programs found on this machine.

    Asks before replacing an existing file, which is kept as subagents.toml.bak. The new file is
    trusted until it changes; after a change, run `subagents config --trust`.

    With --from, agents that were defined for another program are added to it: Claude Code's
    subagents (default: .claude/agents), or those of an openclaw.json. What has no equal is listed.
    Agents that the file has already are left as they are.

    For example:

        subagents init

        subagents init --from claude-agents --dry-run

        subagents init --from openclaw ~/.openclaw/openclaw.json --yes
    """
    if from_ is None:
        refuse_unused("needs --from", dry_run=dry_run)
        if place is not None:
            raise refusal(str(place), "needs --from claude-agents or --from openclaw")
        return _init(yes=yes, json=json)
    from subagents.extensions.install import import_commands  # noqa: PLC0415  it reads JSON5

    if from_ == "claude-agents":
        found = place or Path(".claude/agents")
        return import_commands.claude_agents(found, yes=yes, dry_run=dry_run, json=json)
    if place is None:
        raise refusal("FILE", "is missing", hint="subagents init --from openclaw openclaw.json")
    return import_commands.openclaw(place, yes=yes, dry_run=dry_run, json=json)


def _init(*, yes: bool, json: bool) -> int:
    from subagents.extensions.conversation.found_programs import detect  # noqa: PLC0415
    from subagents.extensions.install.starter import starter_text, usable  # noqa: PLC0415

    file = Path(caller_cwd()) / "subagents.toml"
    found = detect(os.environ)
    allowed = usable(found)
    kept: Path | None = None
    if file.is_symlink() or file.exists():
        if not file.is_file():
            raise UsageError(f"{file} exists and is not a file")
        if not output.is_confirmed(f"{file} exists. Replace it?", yes=yes):
            output.note("Nothing was written.")
            return EXIT_OK
        kept = file.with_name("subagents.toml.bak")
    try:
        # Copied, not moved: where the new one cannot be written, the old one is still in place.
        if kept is not None:
            shutil.copyfile(file, kept)
        file.write_text(starter_text(os.environ, found), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write {file}: {error.strerror}") from error
    # What a worker writes is not trusted, whatever command it writes it with.
    if not is_worker():
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
        output.line(f"The previous file is {kept}")
    _show_found(found)
    listed = ", ".join(allowed)
    output.line(
        f"Agents that call over MCP may spawn: {listed}"
        if allowed
        else "Agents that call over MCP may spawn none; list those that may under allow_agents"
    )
    output.line("Next: subagents run 'echo hello' · subagents doctor · subagents mcp install NAME")
    return EXIT_OK


def _show_found(found: "Sequence[Found]") -> None:
    if not found:
        output.line("Found no agent programs; the agent `command` can run any command line")
        return
    output.line("Found here:")
    for each in found:
        is_known = each.login is not None
        login = f"login: {each.login}" if is_known else f"log in: {each.program.login}"
        output.line(f"  {each.program.name:<17} {each.program.title} · {each.place} · {login}")
