"""Whether Claude Code has an answer on its disk, where a session that was killed goes on from.

It asks its model first and writes a moment later, on a busy machine seconds later.
"""

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

CALL_META: Final = "claudecode/toolUseId"
"""The key in ``_meta`` under which Claude Code names a call as its transcript does."""


def kept_by_claude(
    params: Mapping[str, Any], environ: Mapping[str, str]
) -> Callable[[], bool] | None:
    """Asks whether the answer to a call is in the transcript; made before the answer is written.

    Args:
        params: Of the call.
        environ: Of this process, as Claude Code set it.

    Returns:
        None = the client is another one, or keeps no transcript.
    """
    meta, session = params.get("_meta"), environ.get("CLAUDE_CODE_SESSION_ID", "")
    call = meta.get(CALL_META) if isinstance(meta, dict) else None
    if not isinstance(call, str) or not session.replace("-", "").isalnum():
        return None
    config = Path(environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")
    project = next((each.parent for each in config.glob(f"projects/*/{session}.jsonl")), None)
    if project is None:
        return None
    # All of its folder: `/clear` begins another file, and each of its own agents has one.
    before = _sizes(project)
    marks = [f'"tool_use_id":"{call}"'.encode(), f"<tool-use-id>{call}<".encode()]

    def is_kept() -> bool:
        grown = ((each, before.get(each, 0), size) for each, size in _sizes(project).items())
        added = [_whole_lines(each, since) for each, since, size in grown if size > since]
        return any(mark in lines for lines in added for mark in marks)

    return is_kept


def _sizes(folder: Path) -> dict[Path, int]:
    found = {}
    for each in folder.rglob("*.jsonl"):
        with contextlib.suppress(OSError):  # it may be removed meanwhile
            found[each] = each.stat().st_size
    return found


def _whole_lines(file: Path, since: int) -> bytes:
    try:
        with file.open("rb") as lines:
            lines.seek(since)
            return lines.read().rpartition(b"\n")[0]
    except OSError:
        return b""
