"""What runs have beside the store, for the nodes of a cluster: rows in PostgreSQL."""

import contextlib
import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final

import msgspec

from subagents.domain.run.caller_environment import CallerEnvironment
from subagents.domain.run.run import Progress
from subagents.domain.run.values import RunId
from subagents.extensions.cluster.shared.run_tables import RunTables, data_of, number_of
from subagents.store.environment_files import STRAY_S

CACHED_MAX: Final = 10_000
"""A number above that of the open runs of that kind on one node: they are asked for on the event
loop."""


class _Sealed(msgspec.Struct, array_like=True, frozen=True):
    """What is encrypted: for whom, so that no row stands in for another one."""

    run_id: str
    environment: CallerEnvironment


_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(_Sealed)


class EnvironmentRows:
    """See ``ports.EnvironmentLog``: encrypted.

    The key is the homes' of its nodes, so that whoever reads the database reads none of them.

    Args:
        tables: Where they are.
        encrypt: With the key of the cluster.
        decrypt: Its reverse; raises ``ValueError`` for what was not encrypted with it.
    """

    def __init__(
        self,
        tables: RunTables,
        encrypt: Callable[[bytes], bytes],
        decrypt: Callable[[bytes], bytes],
    ) -> None:
        self._tables = tables
        self._encrypt = encrypt
        self._decrypt = decrypt
        self._cached: OrderedDict[RunId, CallerEnvironment] = OrderedDict()
        self._caching = threading.Lock()

    def keep(self, run_ids: Sequence[RunId], environment: CallerEnvironment) -> None:
        """See ``ports.EnvironmentLog.keep``; also raises ``StoreUnavailable``."""
        rows = [
            (run_id, self._encrypt(_encoder.encode(_Sealed(run_id, environment))))
            for run_id in run_ids
        ]
        self._tables.write(("put_environment", rows))
        for run_id in run_ids:
            self._remember(run_id, environment)

    def read(self, run_id: RunId) -> CallerEnvironment:
        """See ``ports.EnvironmentLog.read``; also raises ``StoreUnavailable``."""
        with self._caching:
            found = self._cached.get(run_id)
            if found is not None:
                self._cached.move_to_end(run_id)
                return found
        rows = self._tables.ask("select_environment", (run_id,))
        if not rows:
            raise FileNotFoundError(f"no variables are kept for {run_id}")
        try:
            sealed = _decoder.decode(self._decrypt(data_of(rows[0][0])))
        except (ValueError, UnicodeDecodeError, RecursionError) as error:
            raise OSError(f"the variables of {run_id} cannot be decrypted: {error}") from error
        if sealed.run_id != run_id:
            raise OSError(f"the variables of {run_id} are those of another run")
        self._remember(run_id, sealed.environment)
        return sealed.environment

    def forget(self, run_id: RunId) -> None:
        """See ``ports.EnvironmentLog.forget``."""
        with self._caching:
            self._cached.pop(run_id, None)
        self._tables.write(("delete_environment", [(run_id,)]))

    def forget_strays(self, is_known: Callable[[RunId], bool]) -> None:
        """See ``ports.EnvironmentLog.forget_strays``."""
        last = ""
        while found := [
            RunId(str(each))
            for (each,) in self._tables.ask("select_old_environments", (STRAY_S, last))
        ]:
            last = found[-1]
            strays = [(each,) for each in found if not is_known(each)]
            self._tables.write(("delete_environment", strays))

    def _remember(self, run_id: RunId, environment: CallerEnvironment) -> None:
        with self._caching:
            self._cached[run_id] = environment
            if len(self._cached) > CACHED_MAX:
                self._cached.popitem(last=False)


_progress: Final[msgspec.json.Decoder[Progress]] = msgspec.json.Decoder(Progress)


class ProgressRows:
    """See ``ports.ProgressLog``: rows; every method also raises ``StoreUnavailable``.

    Args:
        tables: Where they are.
    """

    def __init__(self, tables: RunTables) -> None:
        self._tables = tables

    def append(self, run_id: RunId, progress: Progress) -> None:
        """See ``ports.ProgressLog.append``."""
        row = (run_id, progress.number, _encoder.encode(progress))
        self._tables.write(("put_progress", [row]))

    def read(self, run_id: RunId) -> Sequence[Progress]:
        """See ``ports.ProgressLog.read``."""
        found = []
        for (data,) in self._tables.ask("select_progress", (run_id,)):
            with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                found.append(_progress.decode(data_of(data)))
        return tuple(found)

    def forget(self, run_id: RunId) -> None:
        """See ``ports.ProgressLog.forget``."""
        self._tables.write(("delete_progress", [(run_id,)]))


PIECE_BYTES: Final = 256 * 1024


class ResultRows:
    """See ``ports.ResultLog``: compressed; every method also raises ``StoreUnavailable``.

    A result is whole or not there: all of its rows are one transaction, which goes on while its
    bytes come.

    Args:
        tables: Where they are.
    """

    def __init__(self, tables: RunTables) -> None:
        self._tables = tables

    def keep(
        self, run_id: RunId, name: str, pieces: Iterable[bytes], *, beside: Collection[str]
    ) -> int:
        """See ``ports.ResultLog.keep``."""
        size = 0
        with self._tables.transaction() as transaction:
            transaction.ask("make_durable")
            transaction.ask("require_node", (self._tables.identity,))
            transaction.ask("delete_result", (run_id, name))
            for piece in _pieces(pieces):
                transaction.ask("put_result", (run_id, name, size, zlib.compress(piece)))
                size += len(piece)
            transaction.ask("delete_other_results", (run_id, [name, *beside]))
        return size

    def read(self, run_id: RunId, name: str, offset: int, bytes_max: int) -> bytes:
        """See ``ports.ResultLog.read``."""
        rows = self._tables.ask("select_result", (run_id, name, offset, max(bytes_max, 1)))
        if not rows:
            raise FileNotFoundError(f"result {name} of {run_id} is not there")
        begins = number_of(rows[0][0])
        try:
            text = b"".join(zlib.decompress(data_of(data)) for _, data in rows)
        except zlib.error as error:
            raise OSError(f"result {name} of {run_id} is damaged: {error}") from error
        return text[offset - begins :][:bytes_max]

    def forget(self, run_id: RunId) -> None:
        """See ``ports.ResultLog.forget``."""
        self._tables.write(("delete_results", [(run_id,)]))


def _pieces(given: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces of one size, one at least; the last one may be shorter."""
    held = b""
    for each in given:
        held += each
        while len(held) > PIECE_BYTES:
            yield held[:PIECE_BYTES]
            held = held[PIECE_BYTES:]
    yield held
