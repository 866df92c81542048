"""Results longer than an answer carries, read to their ends in pages."""

from collections.abc import Iterator
from typing import Final, TypeVar

import msgspec

from subagents.api.wire.run_answers import StoredResult
from subagents.client.client import AsyncClient, Client, segment

PAGE_BYTES: Final = 4 * 1024 * 1024

R = TypeVar("R", bound=StoredResult)


def pages(client: Client, run_id: str, size: int) -> Iterator[bytes]:
    """The ``size`` bytes that are kept of the run's result, in order.

    Raises:
        NotFound: They are gone, or the daemon is of 0.1.0 and kept none.
    """
    offset = 0
    while offset < size and (
        page := client.get_bytes(_path(run_id), {"offset": offset, "limit": PAGE_BYTES})
    ):
        offset += len(page)
        yield page


async def whole(client: AsyncClient, found: R) -> R:
    """With all of its result that is kept: an answer carries the last 32 KiB.

    Raises:
        NotFound: The run was pruned, or the file with its long result is gone.
    """
    if not found.truncated:
        return found
    data, path = bytearray(), _path(found.run_id)
    while len(data) < found.kept_bytes and (
        page := await client.get_bytes(path, {"offset": len(data), "limit": PAGE_BYTES})
    ):
        data += page
    is_cut = len(data) < found.result_bytes
    text = data.decode("utf-8", "replace")
    return msgspec.structs.replace(found, result=text, truncated=is_cut)


def _path(run_id: str) -> str:
    return f"/v1/runs/{segment(run_id)}/result/text"
