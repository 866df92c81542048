"""The conversation on disk: kept after each step, so that a later process can continue it."""

import os
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import msgspec
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from subagents.domain.run.usage import Usage
from subagents.extensions.llm.agent_loop.models import is_counted

UNKNOWN: Final = (
    "Outcome unknown: the worker ended while this call was under way. Look whether it was done "
    "before you repeat it."
)
SHRUNK_CHARS: Final = 400
KEPT_MESSAGES: Final = 4
"""How many messages at the end of a conversation are never shortened."""


class _Kept(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    attempt_id: str
    tokens_in: int | None = None
    tokens_out: int | None = None
    tokens_cache_read: int | None = None
    tokens_cache_write: int | None = None
    cost_usd: float | None = None
    messages: msgspec.Raw


class Conversation:
    """Messages so far, and what the attempt used for them.

    Args:
        path: Where it is kept; written whole, with a rename.
        attempt_id: Whose usage is counted.
    """

    def __init__(self, path: Path, attempt_id: str) -> None:
        self._path = path
        self._attempt_id = attempt_id
        self.messages: list[ModelMessage] = []
        self.usage = Usage()

    @classmethod
    def opened(cls, path: Path, attempt_id: str, history: Path | None) -> "Conversation":
        """The continuation of ``history``: at ``path`` if it was there before; None = an empty one.

        Raises:
            ValueError: What is there cannot be read; ``history`` is not there.
        """
        conversation = cls(path, attempt_id)
        if history is None:
            return conversation
        source = path if path.exists() else history
        try:
            kept = msgspec.json.decode(source.read_bytes(), type=_Kept)
            conversation.messages = repaired(
                ModelMessagesTypeAdapter.validate_json(bytes(kept.messages))
            )
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
            raise ValueError(f"the conversation in {source} cannot be read: {error}") from error
        if kept.attempt_id == attempt_id:
            conversation.usage = msgspec.convert(kept, Usage, from_attributes=True)
        return conversation

    def ask(self, parts: Sequence[ModelRequestPart], *, instructions: str) -> None:
        """Add what goes to the model next, and keep it."""
        last = self.messages[-1] if self.messages else None
        if isinstance(last, ModelRequest):
            # It was never answered; two in a row are not understood everywhere.
            parts = [*last.parts, *parts]
            del self.messages[-1]
        self.messages.append(ModelRequest(parts=list(parts), instructions=instructions))
        self.save()

    def answered(self, response: ModelResponse, cost_usd: float | None) -> None:
        """Add the model's answer, and keep it.

        Args:
            response: The answer.
            cost_usd: None = unknown, and so is the cost of all from here on.
        """
        used, before = response.usage, self.usage
        is_first = before.tokens_in is None
        known = cost_usd is not None and (is_first or before.cost_usd is not None)
        if is_counted(response):
            self.usage = Usage(
                tokens_in=(before.tokens_in or 0) + used.input_tokens,
                tokens_out=(before.tokens_out or 0) + used.output_tokens,
                tokens_cache_read=(before.tokens_cache_read or 0) + used.cache_read_tokens,
                tokens_cache_write=(before.tokens_cache_write or 0) + used.cache_write_tokens,
                cost_usd=(before.cost_usd or 0.0) + (cost_usd or 0.0) if known else None,
            )
        self.messages.append(response)
        self.save()

    def save(self) -> None:
        """Write it, whole or not at all."""
        kept = _Kept(
            attempt_id=self._attempt_id,
            tokens_in=self.usage.tokens_in,
            tokens_out=self.usage.tokens_out,
            tokens_cache_read=self.usage.tokens_cache_read,
            tokens_cache_write=self.usage.tokens_cache_write,
            cost_usd=self.usage.cost_usd,
            messages=msgspec.Raw(ModelMessagesTypeAdapter.dump_json(self.messages)),
        )
        self._path.parent.mkdir(parents=True, exist_ok=True)
        number, draft = tempfile.mkstemp(prefix=".session-", dir=self._path.parent)
        with open(number, "wb") as file:  # noqa: PTH123  a descriptor
            file.write(msgspec.json.encode(kept))
        os.replace(draft, self._path)  # noqa: PTH105  a text, not a path

    def shrink(self) -> bool:
        """Shorten old outputs of tools, for a full window; False = there are none."""
        is_any = False
        for at, message in enumerate(self.messages[:-KEPT_MESSAGES]):
            if isinstance(message, ModelRequest):
                parts = [_shrunk(part) for part in message.parts]
                is_any = is_any or any(
                    a is not b for a, b in zip(parts, message.parts, strict=True)
                )
                self.messages[at] = replace(message, parts=parts)
        if is_any:
            self.save()
        return is_any


def repaired(messages: list[ModelMessage]) -> list[ModelMessage]:
    """A conversation whose process was killed: every call has a result, if an unknown one."""
    last = messages[-1] if messages else None
    if isinstance(last, ModelResponse) and (calls := last.tool_calls):
        return [*messages, ModelRequest(parts=[unknown(call) for call in calls])]
    return messages


def unknown(call: ToolCallPart, why: str = UNKNOWN) -> ToolReturnPart:
    """The result of a call that nobody knows the end of."""
    return ToolReturnPart(
        tool_name=call.tool_name, content=why, tool_call_id=call.tool_call_id, outcome="failed"
    )


def user(text: str) -> UserPromptPart:
    """A user's message to the model."""
    return UserPromptPart(content=text)


def _shrunk(part: ModelRequestPart) -> ModelRequestPart:
    if not isinstance(part, ToolReturnPart):
        return part
    text = part.model_response_str()
    if len(text) <= 2 * SHRUNK_CHARS:
        return part
    note = f"\n[… {len(text) - SHRUNK_CHARS:,} characters left out, to make room]"
    content = text[:SHRUNK_CHARS] + note
    return ToolReturnPart(
        tool_name=part.tool_name,
        content=content,
        tool_call_id=part.tool_call_id,
        outcome=part.outcome,
    )
