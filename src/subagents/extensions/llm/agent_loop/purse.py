"""Asks the daemon before each request, so that no request can cross a budget.

The daemon keeps free what the request may use, or has it answered shorter, or has it not start at
all (docs/budgets.md). Where nothing limits the run, a request costs one short call to the daemon.
"""

import asyncio
from collections.abc import Mapping
from typing import Final, Protocol

import msgspec
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage

from subagents.domain.run.usage import Usage
from subagents.errors import DaemonUnreachable, NotFound
from subagents.extensions.llm.agent_loop.event_output import EventSink
from subagents.extensions.llm.agent_loop.input_bound import input_bound
from subagents.extensions.llm.agent_loop.models import cost_usd
from subagents.extensions.llm.llm_assignment import Assignment

OUTPUT_TOKENS: Final = 8_192
"""The limit of an answer under a budget where ``max_tokens`` is not set: every model allows it."""
THINKING_OUTPUT_TOKENS: Final = 32_000
"""The same where the model thinks first: that counts as output."""
LEAST_OUTPUT_TOKENS: Final = 256
"""The shortest answer that is worth its input; with less left, no request is made."""
COUNT_MARGIN: Final = 1.02
COUNT_MARGIN_TOKENS: Final = 64
"""Providers call their own count of a request an estimate."""
COUNTING: Final = frozenset({"anthropic", "openai-responses"})
"""The wires with an endpoint that counts a whole request, its tools included, for free."""
COUNT_S: Final = 10.0
AWAY_S: Final = 3600.0
"""How long a worker with a budget waits for a daemon that is away."""


class BudgetSpent(Exception):
    """No further request of this run may start."""


class Desk(Protocol):
    """Where a worker asks."""

    async def hold(self, need: Mapping[str, object], *, away_s: float) -> Mapping[str, object]:
        """The daemon's answer.

        Raises:
            DaemonUnreachable: It did not come back in time.
        """
        ...


class Purse:
    """What the attempt used, and what its next request may use.

    Args:
        desk: Asks the daemon; None = there is none, and nothing is limited.
        assignment: Model and limits.
        model: Counts a request, where its provider does so for free.
        parameters: The tools of each request.
        settings: Of each request.
        emit: Prints events.
        counted_from: See ``input_bound``.
    """

    def __init__(
        self,
        desk: Desk | None,
        assignment: Assignment,
        *,
        model: Model,
        parameters: ModelRequestParameters,
        settings: ModelSettings,
        emit: EventSink,
        counted_from: int,
    ) -> None:
        self._desk = desk
        self._assignment = assignment
        self._model = model
        self._parameters = parameters
        self._settings = settings
        self._emit = emit
        self._counted_from = counted_from
        self._is_limited: bool | None = None
        """None = the daemon was not asked yet."""
        self._held = 0
        self._lost = 0
        self.was_lowered = False
        """The last answer had a lower limit than it wanted."""
        self._was_cut = False
        """The last answer was cut off at that limit: the same once more is no use."""
        thinks = assignment.thinking not in {None, "off"}
        wanted = THINKING_OUTPUT_TOKENS if thinks else OUTPUT_TOKENS
        self._wanted = assignment.max_tokens or wanted

    async def settings_for(self, messages: list[ModelMessage], used: Usage) -> ModelSettings:
        """The settings with which the next request may be made.

        Args:
            messages: The conversation.
            used: By the attempt so far.

        Raises:
            BudgetSpent: It must not start.
            DaemonUnreachable: There is a budget, and nobody who could say what is left of it.
        """
        self._held = 0
        if self._desk is None:
            return self._settings
        tokens = input_bound(messages, self._parameters, counted_from=self._counted_from)
        can_count = self._assignment.provider in COUNTING
        answer = await self._ask(self._desk, self._need(tokens, used, is_firm=not can_count))
        if can_count and not _is_whole(answer):
            # The bound is two to four times the truth; with room so scarce that matters.
            tokens = await self._counted(messages, tokens)
            answer = await self._ask(self._desk, self._need(tokens, used, is_firm=True))
        if answer is None or not answer.get("limited"):
            self.was_lowered = False
            return self._settings
        if not answer.get("granted"):
            raise BudgetSpent(str(answer.get("reason") or "the budget is used up"))
        output = answer.get("outputTokens")
        self.was_lowered = isinstance(output, int)
        limit = output if isinstance(output, int) else self._wanted
        self._held = tokens + limit
        self._was_cut = False
        if self.was_lowered:
            self._emit("system", text=f"the budget leaves {limit:,} tokens for the next answer")
        settings = self._settings.copy()
        settings["max_tokens"] = limit
        return settings

    def cut(self) -> bool:
        """An answer was cut off at its limit; whether it was a budget that lowered that."""
        self._was_cut = self.was_lowered
        return self._was_cut

    def lost(self) -> None:
        """What the request used will never be known, so all that it may have stays held."""
        self._lost += self._held

    def _need(self, tokens: int, used: Usage, *, is_firm: bool) -> dict[str, object]:
        thinks = self._assignment.thinking not in {None, "off"}
        # Anthropic's models have a budget for thinking, which must be below the limit.
        is_fixed = self._was_cut or (self._assignment.provider == "anthropic" and thinks)
        input_usd, output_usd = self._prices(tokens)
        return {
            "inputTokens": tokens,
            "outputTokens": self._wanted,
            "leastOutputTokens": self._wanted
            if is_fixed
            else min(self._wanted, LEAST_OUTPUT_TOKENS),
            "inputUsd": input_usd,
            "outputTokenUsd": output_usd,
            **msgspec.to_builtins(used),
            "lostTokens": self._lost,
            "firm": is_firm,
        }

    async def _ask(self, desk: Desk, need: Mapping[str, object]) -> Mapping[str, object] | None:
        """The daemon's answer, once it is final; None = nothing limits this worker."""
        has_said = False
        while True:
            away_s = 0.0 if self._is_limited is False else AWAY_S
            try:
                answer = await desk.hold(need, away_s=away_s)
            except NotFound:
                return None  # a daemon that is older than this worker
            except DaemonUnreachable:
                if self._is_limited is False:
                    return None
                raise
            self._is_limited = bool(answer.get("limited"))
            if not answer.get("again"):
                return answer
            if not has_said:
                has_said = True
                self._emit("system", text=f"waiting for other runs: {answer.get('reason')}")

    async def _counted(self, messages: list[ModelMessage], bound: int) -> int:
        """What the provider counts, where that is below the bound."""
        try:
            async with asyncio.timeout(COUNT_S):
                found = await self._model.count_tokens(messages, self._settings, self._parameters)
        except (RuntimeError, OSError):
            return bound
        tokens = int(found.input_tokens * COUNT_MARGIN) + COUNT_MARGIN_TOKENS
        return min(tokens, bound) if found.input_tokens else bound

    def _prices(self, tokens: int) -> tuple[float | None, float | None]:
        """Of so much input at its dearest, and of one token of the answer behind it."""
        plain = self._price(RequestUsage(input_tokens=tokens))
        cached = self._price(RequestUsage(input_tokens=tokens, cache_write_tokens=tokens))
        more = self._price(RequestUsage(input_tokens=tokens, output_tokens=self._wanted))
        if plain is None or more is None:
            return None, None
        return max(plain, cached or 0.0), max(more - plain, 0.0) / self._wanted

    def _price(self, usage: RequestUsage) -> float | None:
        response = ModelResponse(
            parts=[],
            usage=usage,
            model_name=self._model.model_name,
            provider_name=self._model.system,
        )
        return cost_usd(response, self._assignment)


def _is_whole(answer: Mapping[str, object] | None) -> bool:
    """Whether the request may be made as it was meant to be."""
    if answer is None or not answer.get("limited"):
        return True
    return bool(answer.get("granted")) and answer.get("outputTokens") is None
