"""What a run leaves besides its result, in a few lines: last words, files, its worktree.

Source: 7-runtimes (``isolation``); 8-field-failures (deleted files are shown, not only counted).
"""

from typing import Final

from subagents.api.wire.run_answers import Leftovers, RunDetail, Workspace
from subagents.cli import output
from subagents.text import one_line

DELETED_SHOWN: Final = 5
WORDS_LINES: Final = 12


def fields(run: Leftovers | RunDetail) -> list[tuple[str, str]]:
    """Name and text of each, for ``show``."""
    found: list[tuple[str, str]] = []
    if run.workspace is not None:
        found.append(("worktree", _where(run.workspace)))
        found += [("", text) for text in _changed(run.workspace)]
    if run.files_left:
        found.append(("files left", ", ".join(run.files_left)))
    return found


def say(run: Leftovers, *, has_result: bool) -> None:
    """On stderr, behind the one line of its end."""
    for name, text in fields(run):
        output.note(f"  {name + ': ' if name else ''}{one_line(text, chars_max=400)}")
    if run.last_words and not has_result:
        output.note("  last words (it gave no result):")
        for line in run.last_words.splitlines()[-WORDS_LINES:]:
            output.note(f"    {one_line(line, chars_max=400)}")


def _where(found: Workspace) -> str:
    if found.kept is False:
        return f"removed, nothing was changed (it was {found.path})"
    return f"{found.path}  branch {found.branch}"


def _changed(found: Workspace) -> list[str]:
    changes = found.changes
    if changes is None or found.kept is False:
        return []
    lines = [changes.summary]
    if len(changes.deleted) > DELETED_SHOWN:
        lines.append(f"deleted: {', '.join(changes.deleted)}")
    if changes.out_of_scope:
        lines.append(f"not named by its contract: {', '.join(changes.out_of_scope)}")
    if changes.kept_branches:
        lines.append(f"earlier attempts: {', '.join(changes.kept_branches)}")
    return lines
