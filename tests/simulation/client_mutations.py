"""Clients, and answers to them, that acknowledge too early: each one must be caught."""

from typing import Any

import pytest
from tests.simulation.mutation_table import mutation, wrap

from subagents.api.routes import tool_routes
from subagents.client.orchestrator import UnreadMessages


@mutation
def acknowledges_before_the_program_has_the_message(patch: pytest.MonkeyPatch) -> None:
    def make(original: Any) -> Any:
        async def following(self: Any) -> Any:
            message = await original(self)
            await self._acknowledge()
            return message

        return following

    wrap(patch, UnreadMessages, "__anext__", make)


@mutation
def takes_written_answers_for_read_ones(patch: pytest.MonkeyPatch) -> None:
    async def is_taken(*_: object) -> bool:
        return True

    patch.setattr(tool_routes, "is_taken", is_taken)
