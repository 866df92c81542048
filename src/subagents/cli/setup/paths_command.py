"""``config --paths``: every directory and file that this installation uses."""

import os
from pathlib import Path
from typing import NamedTuple

from subagents.cli import output
from subagents.cli.connection import caller_cwd, paths
from subagents.config.paths import Paths


class Place(NamedTuple):
    """One directory or file."""

    name: str
    path: Path
    what: str

    @property
    def exists(self) -> bool:
        return os.path.lexists(self.path)


def show_paths(*, json: bool) -> None:
    """Show every directory and file in use, whether it exists yet or not.

    Nothing else is kept anywhere. ``SUBAGENTS_HOME`` moves all of them.
    """
    found = places(paths(), Path(caller_cwd()))
    if json:
        output.document(
            {
                each.name: {"path": str(each.path), "exists": each.exists, "what": each.what}
                for each in found
            }
        )
        return
    width = max(len(each.name) for each in found)
    for each in found:
        absent = "" if each.exists else "  (not there)"
        output.line(f"{each.name:{width}}  {each.path}{absent}")


def places(home: Paths, cwd: Path) -> list[Place]:
    """All that one home uses; what is below another place comes after it."""
    from subagents.config.config_files import find_files  # noqa: PLC0415
    from subagents.stores import store_file_of  # noqa: PLC0415

    _, projects = find_files(cwd, home.config_file, os.environ.get("HOME"))
    state = home.state_dir
    return [
        Place("config", home.config_file, "your configuration"),
        *(
            Place("projectConfig", each.file, "the project's configuration")
            for each in projects[:1]
        ),
        Place("state", state, "everything that must survive"),
        *(
            [Place("database", home.database, "runs, their events and messages")]
            if store_file_of(home) is not None
            else []
        ),
        Place("attempts", home.attempts_dir, "files between daemon and workers"),
        Place("transcripts", home.transcripts_dir, "what workers said and did"),
        Place("results", home.results_dir, "results too long for the database"),
        Place("progress", home.progress_dir, "progress updates of runs"),
        Place("environments", home.environments_dir, "variables that callers brought"),
        Place("worktrees", home.worktrees_dir, "git worktrees of runs"),
        Place("log", home.log_file, "the daemon's log"),
        Place("refusals", state / "refusals.jsonl", "calls that were refused"),
        Place("operatorToken", state / "operator.token", "for calls over TCP"),
        Place("trustedProjects", home.trusted_file, "project files you trust"),
        Place("lastGoodConfig", home.last_good_config_file, "your configuration when last valid"),
        Place("probes", state / "probes.json", "what doctor --probe found"),
        Place("hooks", state / "hooks", "what Claude Code's hooks remember"),
        Place("lock", home.lock_file, "held by the one daemon"),
        Place("cache", home.cache_dir, "can be deleted at any time"),
        Place("runtime", home.runtime_dir, "of its sockets"),
        Place("socket", home.socket, "where the daemon answers"),
        Place("supervisorSocket", home.supervisor_socket, "where supervisors connect"),
    ]
