"""How runs read on a terminal: one line each, as a tree, and at their end. Pure text."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from subagents.cli import output
from subagents.cli.output import CELL_CHARS_MAX, cells_wide
from subagents.text import compact, cost_bound, counted, duration, milliseconds_of, one_line

if TYPE_CHECKING:
    from subagents.api.wire.message_answers import Progress
    from subagents.api.wire.run_answers import (
        Outcome,
        RunDetail,
        RunNode,
        RunResult,
        RunRow,
        SentMessage,
        StoredResult,
        Verification,
        Workspace,
    )
    from subagents.api.wire.usage_answers import Usage
    from subagents.client.client import Document

ICONS: Final = {
    "ok": "✔",
    "partial": "◐",
    "error": "✖",
    "failed": "✖",
    "timeout": "✖",
    "lost": "✖",
    "cancelled": "■",
    "running": "▶",
    "spawning": "▶",
    "ending": "▶",
    "verifying": "▶",
    "blocked": "?",
    "paused": "⏸",
    "retry_wait": "↻",
    "waiting": "◷",
    "queued": "◷",
}
WORDS: Final = {
    **dict.fromkeys(("waiting", "queued", "retry_wait", "paused"), "waiting"),
    **dict.fromkeys(("spawning", "running", "ending", "verifying"), "working"),
    "blocked": "needs you",
    **dict.fromkeys(("partial", "error", "failed", "timeout", "lost"), "failed"),
}
"""What people are shown of a state; the others are the same word."""
REASONS: Final = {
    "partial": "partly done",
    "lost": "its worker got lost",
    "budget": "its budget is used up",
    "dependency_failed": "a run it needs failed",
    "dependency_timeout": "waited too long for other runs",
    "could_not_check": "its contract could not be checked",
    "exit_unknown": "nobody saw how it ended",
    "interrupted": "interrupted",
    "lease_lost": "its worker got lost",
    "not_allowed": "not allowed",
    "parent_ended": "with the run above it",
    "provider_limit": "at its provider's limit",
    "record_lost": "its record got lost",
    "reported_failed": "its worker says so",
    "reported_partial": "partly done",
    "resource_limit": "over a limit of its process",
    "signal": "killed",
    "start_failed": "could not start",
    "stuck": "stuck",
    "timeout": "timed out",
    "verification_failed": "its contract is not met",
}
"""What is said behind the state, by an outcome's reason or status; others say no more than it."""

VACUOUS: Final = "vacuous: its contract was met before the work"
"""What is said instead of "verified"."""
LABEL_CELLS_MAX: Final = 40
LABEL_CELLS_MIN: Final = 12
REST_CELLS: Final = 48
"""The part of a tree's line that icon, id, agent, state and time take."""
DELETED_SHOWN: Final = 5
WORDS_LINES: Final = 12


class TreeRow(NamedTuple):
    """One run of a tree: what stands before its icon, its state, and the rest of its line."""

    indent: str
    state: str
    text: str
    said: str = ""
    """Why it is so, or how far it is."""

    def lines(self, columns: int | None, *, is_terminal: bool | None = None) -> list[str]:
        """In the colour of its state; what is said and would be cut stands whole below."""
        mark = icon(self.state)
        lines = [f"{self.indent}{mark} {self.text}", *filter(None, [self.said])]
        if columns is None or cells_wide("  ".join(lines)) <= columns:
            lines = ["  ".join(lines)]
        elif self.said:
            import textwrap  # noqa: PLC0415

            lines[1:] = textwrap.wrap(f"    {self.said}", columns, subsequent_indent="    ")
        first, *rest = (output.within(each, columns) for each in lines)
        coloured = output.styled(mark, self.state, is_terminal=is_terminal)
        return [first.replace(mark, coloured, 1), *rest]


def icon(state: str) -> str:
    return ICONS.get(state, "●")


def word(state: str) -> str:
    return WORDS.get(state, state)


class _Branch(NamedTuple):
    """A run of a tree where it stands, or the number of its children that had no room."""

    indent: str
    node: "RunNode"
    left_out: int = 0


def tree_rows(roots: "Sequence[RunNode]", columns: int | None = None) -> list[TreeRow]:
    """A row for each run: its label's head, its id, and what it does, below each other.

    Where the terminal has few ``columns``, the label gives way first; None = it is none.
    """
    branches = [each for root in roots for each in [_Branch("", root), *_below(root, "")]]
    names = [one_line(each.node.label, chars_max=LABEL_CELLS_MAX) for each in branches]
    taken = [cells_wide(each.indent) for each in branches]
    wish = [
        at + cells_wide(name) for at, name, each in zip(taken, names, branches, strict=True)
        if not each.left_out
    ]  # fmt: skip
    widest = max(wish, default=0)
    if columns is not None:
        widest = min(widest, max(columns - REST_CELLS, LABEL_CELLS_MIN))
    rows = []
    for at, name, each in zip(taken, names, branches, strict=True):
        node, room = each.node, max(widest - at, 1)
        if each.left_out:
            text = f"{each.left_out:,} more  subagents list tree:{node.run_id}"
            rows.append(TreeRow(each.indent, "", text))
            continue
        shown = output.within(name, room)
        filled = shown + " " * (room - cells_wide(shown))
        text = f"{filled}  {node.run_id}  {node_text(node)}"
        rows.append(TreeRow(each.indent, node.shown_state, text, node_said(node)))
    return rows


def _below(node: "RunNode", indent: str) -> list[_Branch]:
    found: list[_Branch] = []
    cut = node.truncated
    more = 0 if cut is None else cut.total - cut.shown
    for index, child in enumerate(node.children):
        is_last = index == len(node.children) - 1 and not more
        branch, stem = ("└ ", "  ") if is_last else ("├ ", "│ ")
        found.append(_Branch(indent + branch, child))
        found += _below(child, indent + stem)
    if more:
        found.append(_Branch(f"{indent}└ ", node, more))
    return found


def node_text(node: "RunNode") -> str:
    """``working  command  12s``."""
    parts = [word(node.shown_state), node.agent_id]
    # Waiting takes no time of the worker's; ``why`` says what for.
    if node.elapsed_ms is not None and node.shown_state not in {"waiting", "queued"}:
        parts.append(duration(node.elapsed_ms))
    parts += spending_parts(node)
    if node.outcome is not None and node.verification == "passed":
        parts.append("vacuous" if node.vacuous else "verified")
    return "  ".join(parts)


def node_said(node: "RunNode") -> str:
    """``40% counting lines``, or why it is as it is."""
    if node.outcome is not None:
        return "" if node.shown_state == "ok" else one_line(error_of(node.outcome))
    if node.shown_state in {"waiting", "queued", "retry_wait", "blocked", "paused"} and node.why:
        return one_line(node.why)
    return "" if node.latest_progress is None else progress_text(node.latest_progress)


def spending_parts(node: "RunNode") -> list[str]:
    """What it used with everything below it, as far as that is known, and of its budget."""
    parts = []
    used = node.subtree_usage or node.usage
    if used is not None and (text := usage_text(used)):
        parts.append(text)
    if node.budget is not None and node.budget.percent is not None:
        parts.append(f"budget {node.budget.percent}%")
    return parts


def age(at: str | None, now_ms: float) -> str:
    """How long ago that was, in its largest unit; ``-`` = it is not known when."""
    at_ms = milliseconds_of(at)
    return "-" if at_ms is None else duration(max(round(now_ms - at_ms), 0)).split()[0]


def elapsed(row: "RunRow", now_ms: float) -> str:
    """How long it has been at work, or was."""
    started_ms = milliseconds_of(row.started_at)
    if started_ms is None:
        return "-"
    return duration(round((milliseconds_of(row.ended_at) or now_ms) - started_ms))


def now_text(row: "RunRow") -> str:
    """What it does, or why it does not."""
    if row.outcome is not None:
        vacuous = VACUOUS if row.vacuous and row.outcome.is_ok else ""
        return error_of(row.outcome) or REASONS.get(row.outcome.reason or "") or vacuous
    if row.pending_request_count and row.blocked_reason:
        return f"asks: {row.blocked_reason}"
    if row.shown_state == "running" and row.latest_progress is not None:
        return progress_text(row.latest_progress)
    return row.blocked_reason or row.why or ""


def progress_text(progress: "Progress") -> str:
    share = progress.percent_complete
    percent = "" if share is None else f"{share:g}% "
    return f"{percent}{one_line(progress.phase, CELL_CHARS_MAX)}"


def status_line(answer: "Document") -> str:
    """What became of the run that an answer is about."""
    return f"{answer.get('runId')}: {answer.get('status')}"


def sent_text(sent: "SentMessage") -> str:
    """What became of a message, in one line."""
    name = one_line(sent.label, CELL_CHARS_MAX)
    if sent.is_new:
        return f"{sent.run_id}: {name} continues the session of {sent.continues}"
    kept = "" if sent.status == "steered" else ", for its next turn"
    return f"{sent.run_id}: {name} is at work and has the message ({sent.status}{kept})"


def outcome_text(outcome: "Outcome") -> str:
    """``ok``, or the state with what made it so: ``failed (timed out)``."""
    said = REASONS.get(outcome.reason or "") or REASONS.get(outcome.status)
    state = word(outcome.status)
    return f"{state} ({said})" if said else state


def item_state(item: "RunResult") -> str:
    failed = item.outcome.reason == "verification_failed"
    return "failed" if failed else item.outcome.status


def summary(item: "RunResult", *, elapsed_ms: int | None = None) -> str:
    """The end of a run in one line, without the icon."""
    name = one_line(item.label, chars_max=60) or item.run_id
    parts = [f"{name}: {outcome_text(item.outcome)}"]
    if elapsed_ms is not None:
        parts.append(duration(elapsed_ms))
    if item.verification is not None:
        parts.append(checks_text(item.verification))
    if item.usage is not None and (text := usage_text(item.usage)):
        parts.append(text)
    parts.append(item.run_id)
    return " · ".join(parts)


def checks_text(verification: "Verification") -> str:
    passed = sum(check.passed for check in verification.checks)
    if verification.status == "skipped":
        return "not verified"
    if verification.status == "passed" and verification.vacuous:
        return VACUOUS
    return f"verified {passed}/{len(verification.checks)}"


def usage_text(usage: "Usage") -> str:
    """Tokens and cost, as far as they are known; of several runs how many, and who did not say."""
    parts: list[str] = []
    if usage.tokens is not None:
        parts.append(f"{compact(usage.tokens)} tokens")
    if usage.tokens_cache_read:
        parts.append(f"{compact(usage.tokens_cache_read)} cached")
    if usage.cost_usd is not None:
        parts.append(cost_bound(usage.cost_usd, unknown_runs=usage.cost_unknown_runs))
    text = ", ".join(parts)
    runs = getattr(usage, "runs", None)  # of a tree's
    if not text or runs is None:
        return text
    unknown = usage.cost_unknown_runs if usage.cost_usd is not None else 0
    missing = f", {counted(unknown, 'run')} not reported" if unknown else ""
    return f"{text} in {runs} runs{missing}"


def error_of(outcome: "Outcome") -> str:
    """What went wrong; stored runs say it with the API's name of the deadline."""
    return (outcome.error or "").replace("(runTimeoutSeconds)", "(--timeout)")


def error_lines(outcome: "Outcome", verification: "Verification | None") -> list[str]:
    """Why a run is not ok: the checks that did not pass, else the first lines of its error."""
    checks = [] if verification is None else verification.checks
    if failed := [check for check in checks if not check.passed]:
        from subagents.domain.run.outcome import failure_text  # noqa: PLC0415  only where one failed

        texts = [failure_text(each.target, each.reason) for each in failed]
        stopped, is_stopped, _ = error_of(outcome).partition(f": {texts[0]}")
        return [*([stopped] if is_stopped else ()), *(one_line(each, 400) for each in texts)]
    return [text for text in error_of(outcome).strip().splitlines()[:10] if text.strip()]


def leftover_fields(run: "StoredResult | RunDetail") -> list[tuple[str, str]]:
    """What a run leaves besides its result, by name: files, its worktree and what changed there."""
    found: list[tuple[str, str]] = []
    if run.workspace is not None:
        found += [("worktree", _where(run.workspace))]
        found += [("", text) for text in _changed(run.workspace)]
    if run.files_left:
        found.append(("files left", ", ".join(run.files_left)))
    return found


def say_leftovers(run: "StoredResult", *, has_result: bool) -> None:
    """On stderr, behind the one line of its end."""
    for name, text in leftover_fields(run):
        output.note(f"  {name + ': ' if name else ''}{one_line(text, chars_max=400)}")
    if run.last_words and not has_result:
        output.note("  last output (it returned no result):")
        for line in run.last_words.splitlines()[-WORDS_LINES:]:
            output.note(f"    {one_line(line, chars_max=400)}")


def _where(found: "Workspace") -> str:
    if found.kept is False:
        return f"removed, nothing was changed (it was {found.path})"
    return f"{found.path}  branch {found.branch}"


def _changed(found: "Workspace") -> list[str]:
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
