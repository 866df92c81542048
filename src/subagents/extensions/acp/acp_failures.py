"""What went wrong with a turn of an ACP agent, from a JSON-RPC error or a stop reason; pure.

The protocol has a place for the provider's HTTP status in no message, so it is looked for where
agents put it: members named ``status`` or ``code``, else the words of the message.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from subagents.domain.run.worker_output import ApiError, LineType, OutputItem
from subagents.extensions.acp.acp_agents import AgentFacts
from subagents.extensions.acp.acp_stream import AcpStream
from subagents.extensions.conversation.dialect import Opening, noted
from subagents.extensions.conversation.json_fields import text_at, value_at
from subagents.extensions.conversation.jsonrpc import Response
from subagents.extensions.conversation.provider_words import provider_message
from subagents.runtimes.output.terminal_text import plain

ERROR_CHARS_MAX: Final = 1_000
AUTH_REQUIRED: Final = -32_000
LIMITS: Final = frozenset({429, 503, 529})
"""The provider takes no more for now."""
DEPTH_MAX: Final = 4

_STATUS: Final = re.compile(r"\b(?:status|code|error|HTTP)\W{0,9}(4\d\d|5\d\d)\b", re.IGNORECASE)
_LIMIT_WORDS: Final = re.compile(
    r"rate.?limit|too many requests|overloaded|resource.?exhausted|quota exceeded", re.IGNORECASE
)
_STOPPED: Final = {
    "cancelled": "the turn was interrupted",
    "max_tokens": "the model's answer reached its token limit (max_tokens)",
    "max_turn_requests": "the agent reached its limit of model requests in one turn",
    "refusal": "the model refused to go on (refusal)",
}


class AcpFailure(NamedTuple):
    """Why a turn did not end well."""

    error: str
    status: int | None = None
    is_limit: bool = False
    retry_after_ms: int | None = None
    is_provider: bool = False

    def item(self) -> OutputItem:
        """As a line of the transcript."""
        if not self.is_provider:
            return OutputItem(type=LineType.ERROR, text=self.error)
        error = ApiError(message=self.error, status=self.status, retry_after_ms=self.retry_after_ms)
        return OutputItem(type=LineType.ERROR, text=self.error, api_error=error)


def ending(answer: Response) -> AcpFailure | None:
    """What the answer to a prompt says of its end; None = it ended well."""
    if answer.failure is not None:
        return _of_failure(answer)
    reason = text_at(answer.result, "stopReason")
    if reason == "end_turn":
        return None
    return AcpFailure(_STOPPED.get(reason, f"the turn ended with {reason or 'no stop reason'}"))


def reported(stream: AcpStream, facts: AgentFacts) -> AcpFailure | None:
    """A failure that the agent reported in its stream, before it ended the turn as if it were well.

    Args:
        stream: The whole turn.
        facts: The agent.
    """
    text = stream.last_words
    found = None if facts.failure_text is None else re.search(facts.failure_text, text, re.DOTALL)
    if found is not None:
        unknown = "its model gave no answer, and the agent does not say why"
        return _of_text(found["error"] or unknown, None, None)
    if stream.is_broken:
        # Warnings of the same turn stand before it, each with a blank line behind.
        last = text.rpartition("\n\n")[2]
        return _of_text(last or "the agent reported a system error", stream.status, None)
    return None


def setup(what: str, answer: Response, methods: tuple[str, ...], opening: Opening) -> AcpFailure:
    """Why the agent could not begin; ``methods`` are those it lets one log in with."""
    failure = _of_failure(answer)
    error = f"{what}: {failure.error}"
    is_login = answer.failure is not None and answer.failure.code == AUTH_REQUIRED
    if is_login or what == "authenticate":
        known = f"; it knows the methods {', '.join(methods)}" if methods else ""
        error += (
            f"; log in with the agent's own program, pass its key with `pass_env`, or set "
            f"`runtime_options.auth`{known}"
        )
        error = noted(error, opening.login_note)
    return failure._replace(error=error)


def _of_failure(answer: Response) -> AcpFailure:
    failure = answer.failure
    if failure is None:
        return AcpFailure("the agent answered with nothing")
    detail = _detail(failure.data)
    message = provider_message(failure.message)
    text = message if not detail or detail in message else f"{message}: {detail}"
    status = _status(failure.code, failure.data)
    return _of_text(text, status, _retry_after_ms(failure.data))


def _of_text(text: str, status: int | None, retry_after_ms: int | None) -> AcpFailure:
    text = " ".join(plain(provider_message(text.strip())).split())[:ERROR_CHARS_MAX]
    found = _STATUS.search(text) if status is None else None
    status = int(found[1]) if found is not None else status
    is_limit = status in LIMITS or _LIMIT_WORDS.search(text) is not None
    return AcpFailure(
        error=text,
        status=status,
        is_limit=is_limit,
        retry_after_ms=retry_after_ms,
        is_provider=status is not None or is_limit,
    )


def _detail(data: object) -> str:
    """What ``data`` adds for a reader."""
    if data is None:
        return ""
    if isinstance(data, str):
        return data
    for key in ("details", "message", "error", "reason"):
        found = value_at(data, key)
        if isinstance(found, str) and found:
            return found
    return ""


def _status(code: int, data: object) -> int | None:
    if 400 <= code <= 599:
        return code
    for name, value in _members(data, DEPTH_MAX):
        if name.lower() in {"status", "statuscode", "status_code", "code", "httpstatus"}:
            number = int(value) if isinstance(value, (int, float)) else 0
            if 400 <= number <= 599:
                return number
    return None


def _retry_after_ms(data: object) -> int | None:
    for name, value in _members(data, DEPTH_MAX):
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            continue
        if not 0 <= value < 1e9:
            continue
        match name.lower().replace("_", "").replace("-", ""):
            case "retryafterms" | "retrydelayms":
                return int(value)
            case "retryafter" | "retryafterseconds":
                return int(value * 1000)
    return None


def _members(data: object, depth: int) -> Iterator[tuple[str, object]]:
    if not isinstance(data, dict) or depth <= 0:
        return
    for name, value in data.items():
        yield str(name), value
        yield from _members(value, depth - 1)
