"""One ``POST`` to a webhook: to an address that was looked up before, or through a proxy.

Requests are written and answers parsed as by the client of the daemon (``client.transport``).
"""

import asyncio
import base64
import contextlib
import os
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import quote, unquote, urlsplit

from subagents.client.transport import Answer, request

CONNECT_S: Final = 5.0
"""One of several addresses that does not answer is left for the next after so long."""
ANSWER_BYTES_MAX: Final = 2_000
"""So much of an answer's body is read, where it is read."""
READ_BYTES: Final = 4_096
AS_IT_IS: Final = "/?:@!$&'()*+,;=-._~%"
"""What needs no escape in a path or a query, with what is one."""

_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Url:
    """An address of HTTP, as it is asked for."""

    scheme: str
    host: str
    """A name in ASCII, or an address without brackets."""
    port: int
    target: str
    """Path and query."""
    user: str = ""
    """``NAME:PASSWORD`` of a proxy; empty = it asks for none."""

    @classmethod
    def read(cls, text: str) -> "Url":
        """Take an address apart.

        Raises:
            ValueError: It is none of HTTP.
        """
        parts = urlsplit(text)
        if parts.scheme not in _PORTS or not parts.hostname:
            raise ValueError(
                f"it begins with {parts.scheme or 'no protocol'}:, not http: or https:"
            )
        host = parts.hostname
        query = f"?{quote(parts.query, AS_IT_IS)}" if parts.query else ""
        return cls(
            scheme=parts.scheme,
            host=host if host.isascii() else host.encode("idna").decode(),
            port=parts.port or _PORTS[parts.scheme],
            target=f"{quote(parts.path or '/', AS_IT_IS)}{query}",
            user=unquote(parts.netloc.rpartition("@")[0]),
        )

    @property
    def authority(self) -> str:
        """Host and port, as the first line of a ``CONNECT`` has them."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def shown_host(self) -> str:
        """The value of ``Host``."""
        return self.authority.removesuffix(f":{_PORTS[self.scheme]}")


class Answered(NamedTuple):
    """The answer of a receiver."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes
    """Its beginning; nothing of that of an answer that took what was sent."""


async def post(
    url: Url,
    body: bytes,
    headers: Mapping[str, str],
    *,
    addresses: Sequence[str] = (),
    proxy: Url | None = None,
) -> Answered:
    """Send it once; the connection is closed when this returns or raises.

    Args:
        url: The certificate must be that of its host.
        body: JSON.
        headers: Besides ``Host`` and those of the body.
        addresses: Of its host, tried one after the other; none is asked for with a proxy.
        proxy: What reaches the host instead.

    Raises:
        OSError: It could not be sent, or there was no answer.
        Gone: What answers speaks no HTTP.
    """
    context = _certificates() if "https" in {url.scheme, proxy and proxy.scheme} else None
    if proxy is None:
        reader, writer = await _first(addresses, url, context)
    else:
        reader, writer = await _opened(proxy.host, proxy, context)
    try:
        target = url.target
        if proxy is not None and url.scheme == "http":
            target, headers = f"http://{url.shown_host}{target}", {**headers, **_user(proxy)}
        elif proxy is not None and context is not None:
            await _tunnel(reader, writer, url, proxy)
            await writer.start_tls(context, server_hostname=url.host)
        writer.write(request("POST", target, headers, body, host=url.shown_host))
        # It may answer before it has read everything, and close; so its answer comes first.
        return await _answer(reader)
    finally:
        writer.transport.abort()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def _first(
    addresses: Sequence[str], url: Url, context: ssl.SSLContext | None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    for address in addresses[:-1]:
        try:
            async with asyncio.timeout(CONNECT_S):
                return await _opened(address, url, context)
        except OSError:
            continue
    return await _opened(addresses[-1], url, context)


async def _opened(
    host: str, url: Url, context: ssl.SSLContext | None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if url.scheme == "http" or context is None:
        return await asyncio.open_connection(host, url.port)
    return await asyncio.open_connection(host, url.port, ssl=context, server_hostname=url.host)


async def _tunnel(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, url: Url, proxy: Url
) -> None:
    lines = "".join(f"{name}: {value}\r\n" for name, value in _user(proxy).items())
    head = f"CONNECT {url.authority} HTTP/1.1\r\nHost: {url.authority}\r\n{lines}\r\n"
    writer.write(head.encode("ascii"))
    answer = await _head(reader)
    if not 200 <= answer.status < 300:
        raise OSError(f"its proxy answered {answer.status}")


def _user(proxy: Url) -> dict[str, str]:
    if not proxy.user:
        return {}
    return {"Proxy-Authorization": f"Basic {base64.b64encode(proxy.user.encode()).decode()}"}


async def _head(reader: asyncio.StreamReader) -> Answer:
    answer = Answer(has_length=False)
    while not answer.has_head:
        if not (found := await reader.read(READ_BYTES)):
            raise ConnectionResetError("it closed the connection without an answer")
        answer.feed(found)
    return answer


async def _answer(reader: asyncio.StreamReader) -> Answered:
    answer = await _head(reader)
    body = bytearray()
    if not 200 <= answer.status < 300:
        body += answer.take()
        # As it comes: what a few bytes decompress to has no bound.
        while len(body) < ANSWER_BYTES_MAX and not answer.is_complete:
            if not (found := await reader.read(READ_BYTES)):
                break
            answer.feed(found)
            body += answer.take()
    return Answered(answer.status, answer.headers, bytes(body[:ANSWER_BYTES_MAX]))


def _certificates() -> ssl.SSLContext:
    """Those of the system, or those that the environment names instead."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    file, directory = (os.environ.get(name) or None for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"))
    if file or directory:
        context.load_verify_locations(file, directory)
    else:
        context.load_default_certs()
    return context
