"""Where what is over is kept, as little as is needed of it."""

from collections.abc import Iterator, Sequence
from typing import Protocol


class Objects(Protocol):
    """Blocking; all of it also raises ``StoreUnavailable``."""

    def put(self, key: str, data: bytes | Iterator[bytes]) -> None:
        """Store it as a whole or not at all; what its iterator raises is raised."""
        ...

    def read(self, key: str, offset: int, length: int) -> bytes:
        """As many bytes as ``length`` says from there on; ``length`` is 1 or more.

        Raises:
            FileNotFoundError: It is not there.
        """
        ...

    def delete(self, keys: Sequence[str]) -> None:
        """Idempotent."""
        ...
