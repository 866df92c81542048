"""Over HTTP, into a program of the user's: a chat bot, a bridge, another machine.

``[agents.<id>.courier] webhook = "https://…"`` binds every outside session of that agent to the
address. Each try is one ``POST`` of a JSON object, ``Posted``.

- ``Idempotency-Key`` is the announcement's id, the same in every try.
- With ``webhook_secret_env`` it is signed: ``X-Subagents-Signature: sha256=<hex>`` is the
  HMAC-SHA256 of ``<X-Subagents-Timestamp>.<body>``, the timestamp in Unix seconds.
- 2xx means handed over, which consumes the announcement. 408, 409, 425, 429 and 5xx are tried
  again, not before ``Retry-After``; anything else ends the delivery. Redirects are not followed.
- It never reaches link-local addresses and those where clouds hand out credentials
  (``webhook_addresses``), unless ``webhook_link_local = true``.
- When its time (``announce_timeout_ms``) is over, the connection is closed.

Only the user's own configuration is asked, never a project's: see ``wiring``.
"""

import hashlib
import hmac
import time
from collections.abc import Callable, Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import msgspec

from subagents.api.answers.run_building import shown
from subagents.api.wire.run_answers import Outcome
from subagents.api.wire.wire_struct import Time, WireStruct
from subagents.client.transport import NotHttp
from subagents.config.settings import AgentCourier, Settings
from subagents.domain.run.outcome import (
    Delivered,
    DeliveryFailed,
    DeliveryOutcome,
    DeliveryPath,
)
from subagents.domain.run.run import Message, Run
from subagents.domain.run.values import SessionKey, agent_of
from subagents.extensions.notifications.webhook_addresses import addresses_of
from subagents.extensions.notifications.webhook_request import (
    ANSWER_BYTES_MAX,
    Answered,
    Url,
    post,
)
from subagents.text import one_line
from subagents.version import __version__

SIGNATURE: Final = "X-Subagents-Signature"
TIMESTAMP: Final = "X-Subagents-Timestamp"
AGAIN: Final = frozenset({408, 409, 425, 429})
"""Refusals that another try can turn."""
RETRY_AFTER_MS_MAX: Final = 3_600_000


class WebhookCourier:
    """See ``ports.Courier``.

    Args:
        settings: The user's configuration as it is now.
        environ: Where the secrets are.
    """

    name = "webhook"

    def __init__(self, settings: Callable[[], Settings], environ: Mapping[str, str]) -> None:
        self._settings = settings
        self._environ = environ

    def serves(self, target: SessionKey, requester: Run | None) -> bool:
        """Outside sessions of an agent that has a webhook."""
        return requester is None and self._section(target).webhook is not None

    def _section(self, target: SessionKey) -> AgentCourier:
        agent = self._settings().agents.get(agent_of(target))
        return AgentCourier() if agent is None else agent.courier

    async def deliver(
        self,
        run: Run,
        message: Message,
        requester: Run | None,  # noqa: ARG002 - it has none
    ) -> DeliveryOutcome:
        """Post once; the connection is closed when this returns or raises."""
        section = self._section(message.session_key)
        if section.webhook is None:
            return DeliveryFailed(retryable=True, error="its webhook was taken out of the settings")
        body = msgspec.json.encode(posted(run, message))
        headers: dict[str, str] = {"Idempotency-Key": message.id}
        variable = section.webhook_secret_env
        if variable is not None:
            secret = self._environ.get(variable)
            if not secret:
                return DeliveryFailed(
                    retryable=True,
                    error=f"webhook_secret_env: the daemon has no variable {variable}; set it and "
                    "start the daemon again",
                )
            headers |= signed(secret, body, at_s=int(time.time()))
        agent_id = agent_of(message.session_key)
        return await _post(section, body, headers, f"agents.{agent_id}.courier.webhook_link_local")


class Posted(WireStruct, frozen=True, kw_only=True):
    """What is posted: an announcement, and the run that it is about."""

    text: str
    """The announcement."""
    session_key: str
    """Who is told."""
    run_id: str
    label: str
    agent_id: str
    thread_id: str | None
    """The thread to which its session is bound; null = to none."""
    message_id: str
    continues: str | None
    """The run whose session it continued."""
    outcome: Outcome | None
    ended_at: Time | None


def posted(run: Run, message: Message) -> Posted:
    """The announcement of a run as it is posted."""
    return shown(
        Posted, run, text=message.text, session_key=message.session_key, message_id=message.id
    )


def signed(secret: str, body: bytes, *, at_s: int) -> dict[str, str]:
    """The headers by which a receiver knows that we sent this body, and when."""
    text = f"{at_s}.".encode() + body
    digest = hmac.new(secret.encode(errors="surrogateescape"), text, hashlib.sha256).hexdigest()
    return {TIMESTAMP: str(at_s), SIGNATURE: f"sha256={digest}"}


async def _post(
    section: AgentCourier, body: bytes, headers: Mapping[str, str], key: str
) -> DeliveryOutcome:
    given = section.webhook or ""
    where = _origin(given)
    try:
        url = Url.read(given)
    except ValueError as error:
        return DeliveryFailed(retryable=False, error=f"webhook is no address: {error}")
    sent = {
        "Accept-Encoding": "identity",
        "User-Agent": f"subagents/{__version__}",
        **headers,
    }
    try:
        # The environment's proxy and certificates count, but what was looked up is not again.
        proxy = _proxy_of(url)
        is_any = section.webhook_link_local
        addresses = (url.host,) if is_any and proxy is None else await _addresses(url, proxy)
        # Its whole time is kept by whoever cancels this.
        answer = await post(url, body, sent, addresses=addresses, proxy=proxy)
    except LinkLocal as error:
        text = f"{where} is at {error}, which no webhook reaches unless {key} = true"
        return DeliveryFailed(retryable=False, error=text)
    except NotHttp:
        return DeliveryFailed(retryable=True, error=f"{where}: what answers speaks no HTTP")
    except OSError as error:
        # Not their texts alone: some are empty.
        text = error.strerror or str(error) or type(error).__name__
        return DeliveryFailed(retryable=True, error=f"{where}: {one_line(text)}")
    return _outcome(where, answer)


class LinkLocal(Exception):
    """All that a webhook's host stands for is refused; the message completes ``HOST is at …``."""


async def _addresses(url: Url, proxy: Url | None) -> Sequence[str]:
    """The addresses of a URL's host, in the order to try; of no use where a proxy looks it up.

    Raises:
        LinkLocal: None of them may be reached, or its proxy could choose one that may not.
        OSError: It has none.
    """
    try:
        found = await addresses_of(url.host, url.port)
    except OSError:
        if proxy is None:
            raise
        return ()  # a name that only the proxy knows
    if found.refused and not (found.allowed and proxy is None):
        raise LinkLocal(f"{found.refused[0]}, a link-local or cloud metadata address")
    return found.allowed


def _proxy_of(url: Url) -> Url | None:
    """The proxy that the environment names for a host.

    Raises:
        OSError: It is none of HTTP.
    """
    found = getproxies()
    text = found.get(url.scheme) or found.get("all")
    if not text or proxy_bypass(url.host):
        return None
    try:
        return Url.read(text if "://" in text else f"http://{text}")
    except ValueError as error:
        raise OSError(f"its proxy cannot be asked: {error}") from error


def _outcome(where: str, answer: Answered) -> DeliveryOutcome:
    if 200 <= answer.status < 300:
        return Delivered(path=DeliveryPath.DIRECT)
    text = one_line(answer.body.decode(errors="replace"), ANSWER_BYTES_MAX)
    error = f"{where} answered {answer.status}{f': {text}' if text else ''}"
    is_for_now = answer.status in AGAIN or answer.status >= 500
    wait_ms = retry_after_ms(answer.headers.get("retry-after"), now_s=time.time())
    return DeliveryFailed(
        retryable=is_for_now, error=error, retry_after_ms=wait_ms if is_for_now else None
    )


def retry_after_ms(text: str | None, *, now_s: float) -> int | None:
    """What ``Retry-After`` asks for: seconds or a date; at most an hour; None = it says nothing."""
    if text is None:
        return None
    plain = text.strip()
    if plain.isdecimal() and plain.isascii():
        seconds = float(plain[:9])
    else:
        try:
            seconds = parsedate_to_datetime(plain).timestamp() - now_s
        except (ValueError, OverflowError):
            return None
    return min(max(round(seconds * 1000), 0), RETRY_AFTER_MS_MAX)


def _origin(url: str) -> str:
    """Without path and query: those may be a password."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
