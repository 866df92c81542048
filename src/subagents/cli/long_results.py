"""Prints all of a result, also of one that is longer than an answer carries."""

import sys
from typing import TYPE_CHECKING

from subagents.cli import output
from subagents.cli.connection import connect
from subagents.client.client import Document
from subagents.errors import EXIT_OK, EXIT_RESULT_CUT, SubagentsError

if TYPE_CHECKING:
    from subagents.api.wire.run_answers import StoredResult


def is_cut(item: "StoredResult") -> bool:
    """Whether its answer holds only a part; by its size, for daemons that do not say so."""
    return item.truncated or item.result_bytes > len((item.result or "").encode())


def print_result(item: "StoredResult") -> bool:
    """Write the result to stdout as the worker gave it; returns whether that was all of it."""
    if not is_cut(item):
        output.data(item.result or "")
        return True
    import codecs  # noqa: PLC0415

    from subagents.client import whole_result  # noqa: PLC0415  most results fit into their answer

    # Pages end anywhere, also in the middle of a character.
    decode = codecs.getincrementaldecoder("utf-8")("replace").decode
    printed, last, gone = 0, "", None
    try:
        with connect() as client:
            for page in whole_result.pages(client, item.run_id, item.kept_bytes):
                last = decode(page) or last
                sys.stdout.write(output.shown(last))
                printed += len(page)
    except SubagentsError as error:
        gone = error
    # Not a page came: what the answer has is better than nothing.
    if not printed:
        output.data(item.result or "")
        printed = len((item.result or "").encode())
    elif not last.endswith("\n"):
        sys.stdout.write("\n")
    sys.stdout.flush()
    if printed >= item.result_bytes:
        return True
    _say_cut(printed, item, gone)
    return False


def _say_cut(printed: int, item: "StoredResult", gone: SubagentsError | None) -> None:
    """Say why it is not whole: what is missing was never kept, or is no longer there."""
    part = f"{printed} of {item.result_bytes} bytes"
    if gone is None and item.kept_bytes < item.result_bytes:
        kept = f"the last {part} are kept (retention.max_result_mb)"
        output.note(f"subagents: the result is cut: {kept}")
        return
    why = "the rest of its file is missing" if gone is None else gone.message
    output.note(f"subagents: the result is cut: only {part} are here: {why}")
    output.note(
        "  hint: a backup of the database has no long results; they are in the folder results of"
        " the state directory"
    )


def print_document(document: Document) -> bool:
    """Print the answer of a wait with every result in it whole; returns whether all are."""
    listed = document.get("completed")
    ended = [_filled(each) for each in listed] if isinstance(listed, list) else []
    output.document({**document, "completed": [each for each, _ in ended]})
    sys.stdout.flush()
    return all(is_whole for _, is_whole in ended)


def print_run_document(document: Document) -> bool:
    """Print the answer about one run with its result whole; returns whether it is."""
    whole, is_whole = _filled(document)
    output.document(whole)
    return is_whole


def _filled(document: Document) -> tuple[Document, bool]:
    from subagents.api.wire.run_answers import StoredResult  # noqa: PLC0415
    from subagents.api.wire.wire_struct import read  # noqa: PLC0415
    from subagents.client import whole_result  # noqa: PLC0415

    item = read(document, StoredResult)
    if not is_cut(item):
        return document, True
    data, gone = b"", None
    try:
        with connect() as client:
            data = b"".join(whole_result.pages(client, item.run_id, item.kept_bytes))
    except SubagentsError as error:
        gone = error
    if not data:
        _say_cut(len((item.result or "").encode()), item, gone)
        return document, False
    is_whole = len(data) >= item.result_bytes
    if not is_whole:
        _say_cut(len(data), item, None)
    text = data.decode("utf-8", "replace")
    return {**document, "result": text, "truncated": not is_whole}, is_whole


def exit_code(code: int, *, is_whole: bool) -> int:
    """A result that is not there in full is no success."""
    return EXIT_RESULT_CUT if code == EXIT_OK and not is_whole else code
