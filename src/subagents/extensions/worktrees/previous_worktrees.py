"""What a run's worker is told of the worktrees of the runs that it waited for."""

from collections.abc import Callable, Mapping
from typing import Final

from subagents.config.settings import Settings
from subagents.domain.run.run import Run
from subagents.domain.run.values import RunId
from subagents.extensions.worktrees.worktree_names import words

PREFIX: Final = "SUBAGENTS_PREVIOUS_"
VALUES_BYTES_MAX: Final = 64 * 1024
"""What all variables together may have: those of a run that waits for a thousand would leave no
room for its task."""


def worker_env(
    run: Run, _run_of: Callable[[RunId], Run | None], _settings: Settings
) -> Mapping[str, str]:
    """See ``Extension.worker_env``: branch, path, base and diffstat of each, by its label.

    Of the only one also without the label, as its result is. Of two labels that differ in signs
    alone the first counts.
    """
    left = [(each, each.left) for each in run.waiting.dependencies if each.left is not None]
    found: dict[str, str] = {}
    room = VALUES_BYTES_MAX
    for dependency, each in left:
        values = {
            "BRANCH": each.branch,
            "WORKTREE": each.path,
            "BASE": each.base,
            "DIFFSTAT": each.diffstat,
        }
        name = words(dependency.label) or words(dependency.run_id)
        labelled = PREFIX + name.replace("-", "_").upper() + "_"
        for prefix in (labelled,) if len(left) > 1 else (labelled, PREFIX):
            new = {f"{prefix}{key}": value for key, value in values.items()}
            room -= sum(len(f"{key}={value}".encode()) for key, value in new.items())
            if room < 0:
                return found
            found = new | found
    return found
