"""One request to the model, until it is answered: waits for limits, tries again after faults."""

import asyncio
import contextlib
import math
import time
from collections.abc import Callable
from typing import Final

from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelAPIError,
    ModelConnectionError,
    ModelHTTPError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestTimeout,
    ModelServerError,
    ModelUnavailableError,
    UnexpectedModelBehavior,
)
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings

from subagents.domain.run.usage import Usage
from subagents.extensions.llm.agent_loop.event_output import EventSink
from subagents.extensions.llm.agent_loop.models import is_counted
from subagents.extensions.llm.agent_loop.purse import Purse
from subagents.extensions.llm.agent_loop.shared_limits import LimitGate

RETRIES: Final = 3
"""How often a request is repeated after a fault of the provider or the network; waiting for a limit
is not counted."""
RETRY_S: Final = 1.0
ALIVE_S: Final = 10.0
"""A long answer shows so often that it is under way."""
LIMITS: Final = frozenset({429, 503, 529})
FAULTS: Final = frozenset({408, 409, 425})
MESSAGE_CHARS_MAX: Final = 500


class ProviderLimited(Exception):
    """The provider takes no more, for longer than the worker has patience."""

    def __init__(self, message: str, *, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class CutAnswer(UnexpectedModelBehavior):
    """The answer stopped before the provider said why it ended: the rest of it was lost."""

    def __init__(self) -> None:
        super().__init__("the answer was cut off in the middle")


class ModelClient:
    """Asks one model.

    Args:
        model: Whom.
        provider: Its name, for people.
        purse: What each request may use; its settings.
        parameters: The tools it may call.
        gate: When requests may be sent.
        emit: Prints events.
        request_timeout_s: Of one try.
        patience_s: Of all waiting for limits in one request.
    """

    def __init__(
        self,
        model: Model,
        *,
        provider: str,
        purse: Purse,
        parameters: ModelRequestParameters,
        gate: LimitGate,
        emit: EventSink,
        request_timeout_s: float,
        patience_s: float,
    ) -> None:
        self._model = model
        self._provider = provider
        self._purse = purse
        self._parameters = parameters
        self._gate = gate
        self._emit = emit
        self._request_timeout_s = request_timeout_s
        self._patience_s = patience_s
        self._refused_us = False
        """The wait that follows was printed already, as an error."""

    def cut(self) -> bool:
        """See ``Purse.cut``."""
        return self._purse.cut()

    async def ask(self, messages: list[ModelMessage], used: Usage) -> ModelResponse:
        """The answer.

        Args:
            messages: The conversation.
            used: By the attempt so far.

        Raises:
            BudgetSpent: A budget has no room for the request.
            ProviderLimited: The provider takes no more, for longer than there is patience.
            ModelAPIError: It refuses this request, or failed four times.
            UnexpectedModelBehavior: Its answers make no sense.
            TimeoutError: It did not answer in time, four times.
        """
        began_s, faults = time.monotonic(), 0
        while True:
            async with self._gate.turn(self._on_wait) as turn:
                # Behind the gate: what is kept free while one waits for a provider, nobody can use.
                settings = await self._purse.settings_for(messages, used)
                try:
                    return await self._once(messages, settings, turn.served)
                except (ModelAPIError, UnexpectedModelBehavior, TimeoutError, OSError) as error:
                    if is_limit(error):
                        wait_s = turn.refused(retry_after_s(error))
                        self._limited(error, wait_s, began_s)
                        continue
                    if not isinstance(error, ModelHTTPError):
                        self._purse.lost()
                    faults += 1
                    if faults > RETRIES or not is_fault(error):
                        raise
                    wait_s = RETRY_S * 2.0 ** (faults - 1)
                    self._faulted(error, wait_s, f"{faults}/{RETRIES}")
            await asyncio.sleep(wait_s)

    async def _once(
        self, messages: list[ModelMessage], settings: ModelSettings, on_open: Callable[[], None]
    ) -> ModelResponse:
        alive_s = time.monotonic()
        async with (
            asyncio.timeout(self._request_timeout_s),
            model_request_stream(
                self._model,
                messages,
                model_settings=settings,
                model_request_parameters=self._parameters,
            ) as stream,
        ):
            on_open()
            async for _ in stream:
                if time.monotonic() - alive_s > ALIVE_S:
                    alive_s = time.monotonic()
                    self._emit("text", text="")
            response = stream.get()
            if is_cut(response):
                raise CutAnswer
            if not is_counted(response):
                self._purse.lost()
            return response

    def _limited(self, error: Exception, wait_s: float, began_s: float) -> None:
        """Print that the provider refused.

        Raises:
            ProviderLimited: Waiting would take longer than there is patience.
        """
        text = f"{self._provider} takes no more for now: {error_text(error)}"
        if time.monotonic() - began_s + wait_s > self._patience_s:
            raise ProviderLimited(text, retry_after_s=wait_s) from error
        self._refused_us = True
        self._emit(
            "error",
            text=text,
            api=True,
            status=getattr(error, "status_code", None),
            retryAfterMs=round(wait_s * 1000),
        )

    def _faulted(self, error: Exception, wait_s: float, retry: str) -> None:
        self._emit(
            "error",
            text=f"{self._provider}: {error_text(error)}",
            api=True,
            retry=retry,
            status=getattr(error, "status_code", None),
            retryAfterMs=round(wait_s * 1000),
        )

    def _on_wait(self, wait_s: float) -> None:
        whose = "" if self._refused_us else " (it refused another worker)"
        self._refused_us = False
        text = f"waiting {wait_s:.1f} s for {self._provider}{whose}"
        self._emit("system", text=text, waitsMs=round(wait_s * 1000))


def is_limit(error: BaseException) -> bool:
    """Whether the provider takes no more for now, and waiting helps."""
    if isinstance(error, ModelQuotaExceededError):
        return False
    if isinstance(error, (ModelRateLimitError, ModelUnavailableError)):
        return True
    return isinstance(error, ModelHTTPError) and error.status_code in LIMITS


def retry_after_s(error: BaseException) -> float | None:
    """When to come again, in seconds, if the provider named a time.

    Fractions of a second are not in the standard, and are sent all the same.
    """
    found: float | None = getattr(error, "retry_after", None)
    if found is None and isinstance(error, ModelHTTPError):
        with contextlib.suppress(ValueError):
            found = float((error.headers or {}).get("retry-after", ""))
    return found if found is not None and 0 <= found < math.inf else None


def is_cut(response: ModelResponse) -> bool:
    """Whether the stream ended well by its looks, and without the provider's word for its end.

    The library's own ``finish_reason`` is filled in for some providers: only what came over the
    wire counts.
    """
    return (response.provider_details or {}).get("finish_reason") is None


def is_fault(error: BaseException) -> bool:
    """Whether the same request may well be answered at the next try."""
    if isinstance(error, ModelHTTPError):
        return error.status_code >= 500 or error.status_code in FAULTS
    if isinstance(error, UnexpectedModelBehavior):
        # Status 200, and what came is no answer, or half of one: a proxy, a connection that tore.
        return not isinstance(error, ContentFilterError)
    # The plain one is an answer that cannot be decoded; those with a reason are classes of it.
    is_garbage = type(error) is ModelAPIError
    kinds = (ModelServerError, ModelConnectionError, ModelRequestTimeout, TimeoutError, OSError)
    return is_garbage or isinstance(error, kinds)


def error_text(error: BaseException) -> str:
    """A provider's error, with its status, for people."""
    if isinstance(error, TimeoutError) and not str(error):
        return "no answer in time"
    status = f"{error.status_code}: " if isinstance(error, ModelHTTPError) else ""
    body = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, dict) else body
    message = inner.get("message") if isinstance(inner, dict) else None
    text = message if isinstance(message, str) and message else str(error) or type(error).__name__
    return f"{status}{text}"[:MESSAGE_CHARS_MAX]
