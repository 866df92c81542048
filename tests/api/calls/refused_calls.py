"""Reads what was kept of refused calls."""

import asyncio
import json

from tests.api.home_daemon import Document, Home

from subagents.domain.run.events import CallRefused
from subagents.domain.run.values import RunId


async def lines(home: Home) -> list[Document]:
    """Everything in the file of refusals."""
    await home.services.refusals.flush()
    text = await asyncio.to_thread(home.services.refusals.file.read_text)
    return [json.loads(line) for line in text.splitlines()]


async def events(home: Home, run_id: str) -> list[CallRefused]:
    await home.services.refusals.flush()
    entries = await home.services.engine.queries.journal(RunId(run_id), limit=500)
    return [entry.event for entry in entries if isinstance(entry.event, CallRefused)]


async def working(home: Home, label: str = "w") -> str:
    """A run whose worker is there and hangs."""
    run_id = str((await home.spawn("hang", label=label))["runId"])
    await home.until_phase(run_id, "running")
    return run_id
