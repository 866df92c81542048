"""Lines of a stream, none longer than the limit; a longer one is skipped, not kept."""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

LINE_BYTES_MAX: Final = 1024 * 1024
CHUNK_BYTES: Final = 64 * 1024


async def lines(
    reader: asyncio.StreamReader, *, bytes_max: int = LINE_BYTES_MAX
) -> AsyncIterator[bytes | None]:
    """Every line without its end, None in place of one that was too long; the last needs no end."""
    kept = bytearray()
    is_too_long = False
    while chunk := await reader.read(CHUNK_BYTES):
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            is_too_long = is_too_long or len(kept) + len(part) > bytes_max
            yield None if is_too_long else bytes(kept + part)
            kept.clear()
            is_too_long = False
        is_too_long = is_too_long or len(kept) + len(rest) > bytes_max
        if is_too_long:
            kept.clear()
        else:
            kept += rest
    if kept or is_too_long:
        yield None if is_too_long else bytes(kept)
