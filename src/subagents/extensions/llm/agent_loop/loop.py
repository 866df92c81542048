"""One turn: ask the model, run the tools it calls, until it calls none.

The conversation is kept after each step, and messages that came meanwhile go into it before the
next request. Whatever happens, the turn ends with one ``result`` event.
"""

import asyncio
import contextlib
import hashlib
import time
from collections.abc import Awaitable, Collection, Sequence
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelContextWindowExceededError,
    UnexpectedModelBehavior,
)
from pydantic_ai.messages import (
    ModelRequestPart,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
)

from subagents.extensions.llm.agent_loop.conversation_file import Conversation, unknown, user
from subagents.extensions.llm.agent_loop.event_output import EventSink
from subagents.extensions.llm.agent_loop.incoming import Incoming
from subagents.extensions.llm.agent_loop.model_request import (
    ModelClient,
    ProviderLimited,
    error_text,
)
from subagents.extensions.llm.agent_loop.models import cost_usd, is_counted
from subagents.extensions.llm.agent_loop.purse import BudgetSpent
from subagents.extensions.llm.agent_loop.tools.daemon_tools import DaemonTools
from subagents.extensions.llm.agent_loop.tools.loop_tools import LoopTool, Returned
from subagents.extensions.llm.agent_loop.tools.path_bounds import ToolRefused
from subagents.extensions.llm.llm_assignment import Assignment
from subagents.text import cut_middle

OUTPUT_CHARS_MAX: Final = 61_000
"""The longest output of a tool, as the model sees it."""
GIVEN_CHARS_MAX: Final = 4_000
"""The longest argument of a tool in an event; the model's own are whole."""
TEXT_CHARS_MAX: Final = 200_000
"""The longest text in an event: the line must stay one that is read as an event."""
ID_CHARS: Final = 24
CUT: Final = "Your answer was cut off at its limit. Go on exactly where it stopped."
INTERRUPTED: Final = "Interrupted: this call was stopped. Its outcome is unknown."

T = TypeVar("T")


class Interrupted(Exception):
    """The turn is to end."""


class AgentTurn:
    """One turn of one attempt.

    Args:
        assignment: What to do.
        conversation: The conversation so far.
        model_client: Asks the model.
        tools: All that the model may use.
        daemon_tools: Acknowledges what was kept of the inbox.
        incoming: What comes in meanwhile.
        emit: Prints events.
    """

    def __init__(
        self,
        assignment: Assignment,
        *,
        conversation: Conversation,
        model_client: ModelClient,
        tools: Sequence[LoopTool],
        daemon_tools: DaemonTools,
        incoming: Incoming,
        emit: EventSink,
    ) -> None:
        self._assignment = assignment
        self._conversation = conversation
        self._model_client = model_client
        self._tools = {tool.name: tool for tool in tools}
        self._daemon_tools = daemon_tools
        self._incoming = incoming
        self._emit = emit
        self._alone = asyncio.Lock()
        self._last_text = ""
        """The last text of the model in this turn."""

    async def run(self) -> None:
        """Work, and print the result."""
        try:
            text = await self._turns()
        except Interrupted:
            self._fail("interrupted")
        except ProviderLimited as error:
            wait_ms = round(error.retry_after_s * 1000)
            self._fail(str(error), isLimit=True, retryAfterMs=wait_ms)
        except BudgetSpent as error:
            # The daemon has stopped the run already: what was said last is its result.
            self._fail(str(error))
        except (ModelAPIError, UnexpectedModelBehavior, TimeoutError, OSError) as error:
            status = getattr(error, "status_code", None)
            text = f"{self._assignment.provider}: {error_text(error)}"
            self._emit("error", text=text, api=True, status=status)
            self._fail(text)
        else:
            if text is not None:
                self._emit("result", text=cut_middle(text, TEXT_CHARS_MAX))

    async def _turns(self) -> str | None:
        """The result, or None when a failure was printed already."""
        parts: list[ModelRequestPart] = [user(self._assignment.message)]
        for _ in range(self._assignment.max_turns):
            self._put(parts)
            response = await self._until_interrupted(self._answer())
            self._record(response)
            if response.tool_calls:
                parts = [*await self._use(response.tool_calls)]
                continue
            if response.finish_reason == "length" and self._model_client.cut():
                # Goes on where a budget has more room by now; else the daemon ends the run.
                parts = [user(CUT)]
                continue
            parts = []
            if self._incoming.has_new():
                continue
            return self._ended(response)
        limit = self._assignment.max_turns
        self._put(parts, is_last=True)
        self._fail(f"max_turns: {limit} requests to the model were not enough")
        return None

    def _put(self, parts: list[ModelRequestPart], *, is_last: bool = False) -> None:
        """Keep what goes to the model next, and print the keys of the messages in it."""
        messages = [] if is_last else self._incoming.take()
        asked = [*parts, *(user(each.text) for each in messages)]
        if asked:
            self._conversation.ask(asked, instructions=self._assignment.system_prompt)
        for each in messages:
            self._emit("taken", key=each.key)

    async def _answer(self) -> ModelResponse:
        while True:
            try:
                conversation = self._conversation
                return await self._model_client.ask(conversation.messages, conversation.usage)
            except ModelContextWindowExceededError:
                if not self._conversation.shrink():
                    raise
                self._emit("system", text="the window is full: old outputs of tools are shortened")

    def _record(self, response: ModelResponse) -> None:
        """Keep an answer, and print its text and what it cost."""
        self._conversation.answered(response, cost_usd(response, self._assignment))
        for part in response.parts:
            match part:
                case ThinkingPart(content=str(text)) if text.strip():
                    self._emit("thinking", text=cut_middle(text, TEXT_CHARS_MAX))
                case TextPart(content=text) if text.strip():
                    self._emit("text", text=cut_middle(text, TEXT_CHARS_MAX))
        text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
        self._last_text = text if text.strip() else self._last_text
        if not is_counted(response):
            return  # what is unknown is not 0
        self._emit("usage", **msgspec.to_builtins(self._conversation.usage))
        window, model = self._assignment.context_window, self._assignment.model
        tokens = response.usage.input_tokens + response.usage.output_tokens
        self._emit("context", tokens=tokens, window=window, model=model)

    def _ended(self, response: ModelResponse) -> str | None:
        match response.finish_reason:
            case "length":
                self._fail("the answer was cut off: raise runtime_options.max_tokens")
            case "content_filter":
                self._fail("the provider's filter stopped the answer")
            case _ if not self._last_text:
                self._fail("the model ended without a word")
            case _:
                return self._last_text
        return None

    def _fail(self, error: str, **more: object) -> None:
        text = cut_middle(self._last_text, TEXT_CHARS_MAX)
        self._emit("result", text=text, isError=True, error=error, **more)

    # -- tools -----------------------------------------------------------------------------------

    async def _use(self, calls: Sequence[ToolCallPart]) -> list[ToolReturnPart]:
        """Run the calls of one answer, those side by side that may be; keep their results."""
        step = len(self._conversation.messages)
        under_way = [asyncio.create_task(self._call(each, step)) for each in calls]
        try:
            returned = await self._until_interrupted(asyncio.gather(*under_way))
        except Interrupted:
            await asyncio.wait(under_way)
            parts = [
                unknown(call, INTERRUPTED) if task.cancelled() else task.result()[0]
                for call, task in zip(calls, under_way, strict=True)
            ]
            self._conversation.ask(parts, instructions=self._assignment.system_prompt)
            raise
        parts = [part for part, _ in returned]
        handed_over = [message for _, messages in returned for message in messages]
        if handed_over:
            self._conversation.ask(parts, instructions=self._assignment.system_prompt)
            await self._daemon_tools.consumed(handed_over)
            return []
        return parts

    async def _call(self, call: ToolCallPart, step: int) -> tuple[ToolReturnPart, Collection[str]]:
        identity = {"name": call.tool_name, "id": call.tool_call_id}
        began_s = time.monotonic()
        given: object = call.args
        try:
            tool, given = self._tool(call)
            # Not the provider's id alone: some begin to count again with each answer.
            call_id = f"{step}:{call.tool_call_id}".encode()
            name = hashlib.sha256(call_id).hexdigest()[:ID_CHARS]
            async with self._alone if tool.is_alone else contextlib.nullcontext():
                self._emit("tool", **identity, status="started", input=_shown(given))
                began_s = time.monotonic()
                returned = await tool.run(given, name)
        except ToolRefused as refusal:
            returned = Returned(str(refusal), is_error=True)
        except asyncio.CancelledError:
            self._emit_end(identity, given, Returned(INTERRUPTED, is_error=True), began_s)
            raise
        except Exception as error:  # noqa: BLE001  the model can continue without one tool
            returned = Returned(f"{type(error).__name__}: {error}", is_error=True)
        # The name of a file need not be UTF-8; all that is printed and sent must be.
        returned = returned._replace(text=returned.text.encode("utf-8", "replace").decode())
        self._emit_end(identity, given, returned, began_s)
        part = ToolReturnPart(
            tool_name=call.tool_name,
            content=cut_middle(returned.text, OUTPUT_CHARS_MAX),
            tool_call_id=call.tool_call_id,
            # An exit code is in the text; as a failure the whole output would be quoted.
            outcome="failed" if returned.is_error and returned.exit_code is None else "success",
        )
        return part, returned.handed_over

    def _tool(self, call: ToolCallPart) -> tuple[LoopTool, dict[str, object]]:
        """The tool and its arguments.

        Raises:
            Refused: There is no such tool, or the arguments are no JSON object.
        """
        tool = self._tools.get(call.tool_name)
        if tool is None:
            raise ToolRefused(
                f"there is no tool {call.tool_name}; there are {', '.join(self._tools)}"
            )
        given = call.args if call.args is not None else {}
        if isinstance(given, str):
            try:
                given = msgspec.json.decode(given or "{}")
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise ToolRefused(f"arguments: {error}") from error
        if not isinstance(given, dict):
            raise ToolRefused("arguments: they must be an object")
        return tool, given

    def _emit_end(
        self, identity: dict[str, str], given: object, returned: Returned, began_s: float
    ) -> None:
        self._emit(
            "tool",
            **identity,
            status="ended",
            input=_shown(given),
            output=cut_middle(returned.text, OUTPUT_CHARS_MAX),
            exitCode=returned.exit_code,
            isError=returned.is_error,
            durationMs=round((time.monotonic() - began_s) * 1000),
        )

    async def _until_interrupted(self, work: Awaitable[T]) -> T:
        """What ``work`` returns.

        Raises:
            Interrupted: Somebody wants the turn to end; the work is cancelled.
        """
        task = asyncio.ensure_future(work)
        asked = asyncio.create_task(self._incoming.interrupted.wait())
        try:
            await asyncio.wait({task, asked}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            raise Interrupted
        finally:
            asked.cancel()
            if not task.done():
                task.cancel()
                await asyncio.wait([task])


def _shown(given: object) -> object:
    """Arguments with long texts cut."""
    if isinstance(given, str):
        return cut_middle(given, GIVEN_CHARS_MAX)
    if isinstance(given, dict):
        return {name: _shown(value) for name, value in given.items()}
    if isinstance(given, list):
        return [_shown(value) for value in given]
    return given


def conversation_of(assignment: Assignment) -> Conversation:
    """The conversation that the assignment continues.

    Raises:
        ValueError: It cannot be read.
    """
    history = assignment.history_file
    return Conversation.opened(
        Path(assignment.session_file),
        assignment.attempt_id,
        None if history is None else Path(history),
    )
