"""Whether two requests under one idempotency key ask for the same.

A key is kept with a digest of each parameter that was given, never with the parameters: those may
be long, and are deleted sooner with ``cleanup: delete``. What a run holds is no substitute, because
a spec that continues a session takes over what it omits. Parameters that have their defaults are
left out, so that a parameter that is added later changes no digest.
"""

import hashlib
from typing import Final

import msgspec

from subagents.domain.run.spec import Budget, RunSpec

DIGEST_BYTES: Final = 8
"""How much is kept of each parameter's digest; a mismatch is a mistake, not an attack."""

# Sorted: a dictionary in the request says the same in whatever order its client wrote it.
_encode: Final = msgspec.json.Encoder(order="sorted").encode
_given: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_digests: Final = msgspec.json.Decoder(dict[str, str]).decode


def digest_of(spec: RunSpec, *, cwd: str = "", plan: Budget | None = None) -> str:
    """What is kept of a request besides its key: one line of JSON.

    Args:
        spec: As it was asked for, before anything was resolved or taken over.
        cwd: Where a spec works that names no directory; one that continues a session has its own.
        plan: The budget of the plan that it came in.
    """
    given = _given(_encode(spec))
    given.pop("idempotencyKey", None)
    if spec.cwd is None and spec.continues is None:
        given["cwd"] = msgspec.Raw(_encode(cwd))
    if plan is not None:
        given["budget of the plan"] = msgspec.Raw(_encode(plan))
    return _encode({name: _short(bytes(value)) for name, value in given.items()}).decode()


def differing(known: str | None, asked: str) -> tuple[str, ...]:
    """Names of the parameters in which two requests differ, by their digests."""
    if known is None:
        return ()  # stored before there were digests: taken for the same
    first, second = _digests(known), _digests(asked)
    return tuple(
        name for name in sorted({**first, **second}) if first.get(name) != second.get(name)
    )


def _short(value: bytes) -> str:
    return hashlib.blake2b(value, digest_size=DIGEST_BYTES).hexdigest()
