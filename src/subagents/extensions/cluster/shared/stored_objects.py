"""An object store that all nodes of a cluster reach: S3, GCS, Azure, or a directory."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Final

import obstore
from obstore.exceptions import BaseError
from obstore.store import LocalStore, ObjectStore, from_url

from subagents.errors import StoreUnavailable

_FILE: Final = "file://"
RETRIES_MAX: Final = 3
RETRY_S: Final = 10


class StoredObjects:
    """See ``Objects``. Credentials are the environment's, as the provider's own programs read them.

    Args:
        url: Of the store, with a path below which everything is.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._store: ObjectStore = _opened(url)

    def put(self, key: str, data: bytes | Iterator[bytes]) -> None:
        """See ``Objects.put``."""
        try:
            obstore.put(self._store, key, data)
        except BaseError as error:
            raise self._unavailable(key, error) from error

    def read(self, key: str, offset: int, length: int) -> bytes:
        """See ``Objects.read``."""
        try:
            return bytes(obstore.get_range(self._store, key, start=offset, length=length))
        except FileNotFoundError:
            raise
        except (BaseError, OSError) as error:
            raise self._unavailable(key, error) from error

    def delete(self, keys: Sequence[str]) -> None:
        """See ``Objects.delete``."""
        for key in keys:
            try:
                obstore.delete(self._store, key)
            except FileNotFoundError:
                continue
            except (BaseError, OSError) as error:
                raise self._unavailable(key, error) from error

    def _unavailable(self, key: str, error: Exception) -> StoreUnavailable:
        first = str(error).strip().partition("\n")[0]
        return StoreUnavailable(f"{key} in {self._url}: {first}")


def _opened(url: str) -> ObjectStore:
    if url.startswith(_FILE):
        return LocalStore(url.removeprefix(_FILE), mkdir=True)
    return from_url(
        url,
        retry_config={"max_retries": RETRIES_MAX, "retry_timeout": timedelta(seconds=RETRY_S)},
    )
