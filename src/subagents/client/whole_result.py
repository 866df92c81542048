"""Results longer than an answer carries, read to the end in pages."""

from collections.abc import AsyncIterator, Iterator
from typing import Final

from subagents.client.client import AsyncClient, Client, segment

PAGE_BYTES: Final = 4 * 1024 * 1024


def pages(client: Client, run_id: str, size: int) -> Iterator[bytes]:
    """The ``size`` bytes that are kept of the run's result, in order.

    Raises:
        NotFound: They are gone, or the daemon is of 0.1.0 and kept none.
    """
    offset = 0
    while offset < size:
        page = client.get_bytes(_path(run_id), {"offset": offset, "limit": PAGE_BYTES})
        if not page:
            return
        offset += len(page)
        yield page


async def pages_async(client: AsyncClient, run_id: str, size: int) -> AsyncIterator[bytes]:
    """Like ``pages``."""
    offset = 0
    while offset < size:
        page = await client.get_bytes(_path(run_id), {"offset": offset, "limit": PAGE_BYTES})
        if not page:
            return
        offset += len(page)
        yield page


def _path(run_id: str) -> str:
    return f"/v1/runs/{segment(run_id)}/result/text"
