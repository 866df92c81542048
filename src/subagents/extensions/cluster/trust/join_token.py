"""The text with which a machine joins a cluster: ``https://HOST:PORT#SECRET.FINGERPRINT``."""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass, field
from typing import Final

from subagents.errors import UsageError
from subagents.extensions.cluster.cluster_settings import NODE_URL_PATTERN

_CODED: Final = r"[A-Za-z0-9_-]{43}"
_TOKEN: Final = re.compile(rf"({NODE_URL_PATTERN.strip('^$')})/?#({_CODED})\.({_CODED})")


@dataclass(frozen=True, slots=True)
class JoinToken:
    """Where to ask, with what, and whom to believe."""

    url: str
    """The address of a node."""
    secret: bytes = field(repr=False)
    """Burned when it is used; 32 bytes."""
    fingerprint: bytes
    """The digest of the cluster's CA; see ``authority.fingerprint``."""

    @property
    def text(self) -> str:
        return f"{self.url}#{coded(self.secret)}.{coded(self.fingerprint)}"


def parse_token(text: str) -> JoinToken:
    """The reverse of ``JoinToken.text``.

    Raises:
        UsageError: It is none; the message does not repeat it.
    """
    found = _TOKEN.fullmatch(text.strip())
    if found is None:
        raise UsageError(
            "this is no token of a cluster: it must look like https://HOST:PORT#SECRET.FINGERPRINT",
            hint="make one on a node of the cluster: subagents cluster token; put it into quotes",
            details={"field": "TOKEN"},
        )
    return JoinToken(found[1], decoded(found[2]), decoded(found[3]))


def is_node_url(text: str) -> bool:
    """Whether a node can be reached at it."""
    return re.fullmatch(NODE_URL_PATTERN, text) is not None


def coded(data: bytes) -> str:
    """32 bytes as 43 characters of base64url."""
    return urlsafe_b64encode(data).decode().rstrip("=")


def decoded(text: str) -> bytes:
    """The reverse of ``coded``.

    Raises:
        UsageError: It is not what ``coded`` makes.
    """
    if not re.fullmatch(_CODED, text):
        raise UsageError("a secret of a cluster has 43 characters of base64url")
    return urlsafe_b64decode(f"{text}=")
