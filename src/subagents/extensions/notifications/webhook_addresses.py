"""Which addresses a webhook reaches: any but those where a machine tells its own secrets.

Link-local addresses, and a few others, are where clouds answer every process of a machine with its
credentials. A name can lead there although its URL does not look like it, and to another address
at each look. So a name is resolved once, and what was checked is what is connected to.

Loopback and private networks are no such places: most webhooks are a bot next to the daemon.
"""

import asyncio
import socket
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final, NamedTuple

_REFUSED: Final = tuple(
    ip_network(each)
    for each in (
        "169.254.0.0/16",  # link-local: AWS, Google, Azure, Oracle, OpenStack, Tencent, …
        "100.100.100.200/32",  # Alibaba
        "168.63.129.16/32",  # Azure's host
        "192.0.0.192/32",  # Oracle, before
        "fe80::/10",  # link-local
        "fd00:ec2::/32",  # AWS
        "fd20:ce::/32",  # Google
        "fd00:c1::/32",  # Oracle
        "fd00:42::/32",  # Scaleway
    )
)
_EMBEDDING: Final = tuple(ip_network(each) for each in ("64:ff9b::/96", "::/96"))
"""NAT64 and IPv4-compatible addresses: their last 32 bits are an IPv4 address."""


class Addresses(NamedTuple):
    """Where a name leads, in the order to try."""

    allowed: tuple[str, ...]
    refused: tuple[str, ...]


async def addresses_of(host: str, port: int) -> Addresses:
    """Look a host up, once.

    Args:
        host: A name or an address in any spelling (``2852039166`` is one).
        port: 1 to 65535.

    Raises:
        OSError: It has no address, or cannot be looked up now.
    """
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as error:
        raise OSError(f"{host} is no name of a host") from error
    every = tuple(dict.fromkeys(str(address[0]) for *_, address in found))
    refused = tuple(each for each in every if is_refused(each))
    return Addresses(tuple(each for each in every if each not in refused), refused)


def is_refused(address: str) -> bool:
    """Whether a webhook may not reach an address, as ``getaddrinfo`` spells it."""
    return any(each in network for each in _meant(ip_address(address)) for network in _REFUSED)


def _meant(address: IPv4Address | IPv6Address) -> tuple[IPv4Address | IPv6Address, ...]:
    """The address, and those of the older protocol that it stands for."""
    if isinstance(address, IPv4Address):
        return (address,)
    teredo = address.teredo or ()
    others = [address.ipv4_mapped, address.sixtofour, *teredo]
    if any(address in network for network in _EMBEDDING):
        others.append(IPv4Address(int(address) & 0xFFFFFFFF))
    return (address, *(each for each in others if each is not None))
