"""What is counted over all nodes, in the PostgreSQL of the cluster: one statement for each demand.

What is given to whom is decided in the server (the function ``settle``, migration 0004), under
locks that nobody holds while somebody is waited for.
"""

import threading
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec
import psycopg

from subagents.errors import Fenced, StoreUnavailable
from subagents.extensions.cluster.node_permits import Demand, Settlement
from subagents.extensions.cluster.postgres.database_url import parse_url
from subagents.extensions.cluster.postgres.link import Link
from subagents.extensions.cluster.postgres.postgres_migrations import statements
from subagents.ports import Amount, CapKey, CapShare, SharedGate

NODE_OVER: Final = "SUB01"
"""The SQLSTATE that the function ``settle`` raises, as ``fence`` does."""


class _Answer(msgspec.Struct):
    lanes: list[tuple[str, int, int, bool]]
    caps: list[tuple[str, str, int, float, int, float, int, float, int]]
    gates: list[tuple[str, str, int, int | None, int, int]]


class PostgresPermits:
    """See ``ports.Permits``; one connection, made when it is needed.

    Args:
        url: See ``database_url``; of the store, which made the schema.
        identity: Of this node, once the store is open.
    """

    def __init__(self, url: str, identity: Callable[[], str]) -> None:
        self._url = parse_url(url)
        self._sql = statements(self._url.schema)
        self._identity = identity
        self._link: Link | None = None
        self._asking = threading.Lock()
        self._generation = 1
        """The generation of demands; a new one begins after a demand that may still be on its
        way."""
        self._answers = msgspec.json.Decoder(_Answer)

    def settle(self, demand: Demand) -> Settlement:
        """See ``ports.Permits.settle``."""
        written = msgspec.json.encode(_written(demand)).decode()
        with self._asking:
            try:
                if self._link is None or self._link.is_lost:
                    self._link = Link(self._url.conninfo)
                asked = (self._identity(), self._generation, written)
                ((found,),) = self._link.ask(self._sql["settle"], asked)
                mine = self._link.ask(self._sql["counted"], asked[:1]) if demand.handed else ()
            except psycopg.Error as error:
                self._generation += 1
                if error.sqlstate == NODE_OVER:
                    raise Fenced(
                        f"this node is over: others took its partitions in {self._url.shown}"
                    ) from error
                raise StoreUnavailable(
                    f"{self._url.shown} cannot be asked for slots: {' '.join(str(error).split())}"
                ) from error
        answer = self._answers.decode(str(found))
        return Settlement(
            lanes={
                (lane, depth): slots for lane, depth, slots, is_named in answer.lanes if is_named
            },
            caps={
                CapKey(key, day): CapShare(
                    Amount(*kept), Amount(*used), Amount(*held), others_cost_unknown=unknown
                )
                for key, day, *sums, unknown in answer.caps
                for kept, used, held in (_pairs(sums),)
            },
            gates=[SharedGate(*each) for each in answer.gates],
            handed=frozenset(demand.handed) & {int(str(part)) for (part,) in mine},
        )

    def close(self) -> None:
        """See ``ports.Permits.close``."""
        with self._asking:
            if self._link is not None:
                self._link.close()
                self._link = None


def _pairs(sums: list[Any]) -> list[tuple[int, float]]:
    return list(zip(sums[::2], sums[1::2], strict=True))


class _Lane(NamedTuple):
    lane: str
    depth: int
    limit: int
    used: int
    most: int


def _written(demand: Demand) -> dict[str, object]:
    """As the function reads it."""
    return {
        "partitions": sorted(demand.partitions),
        "lanes": [_Lane(*key, *wanted)._asdict() for key, wanted in demand.lanes.items()],
        "caps": [
            {
                **key._asdict(),
                "limit_tokens": wanted.limit_tokens,
                "limit_usd": wanted.limit_usd,
                "used_tokens": wanted.used.tokens,
                "used_usd": wanted.used.usd,
                "held_tokens": wanted.held.tokens,
                "held_usd": wanted.held.usd,
                "more_tokens": wanted.more.tokens,
                "more_usd": wanted.more.usd,
                "cost_unknown": wanted.cost_unknown,
                "before_tokens": wanted.before.tokens,
                "before_usd": wanted.before.usd,
                "before_unknown": wanted.before_unknown,
            }
            for key, wanted in demand.caps.items()
        ],
        "closed": [each._asdict() for each in demand.closed],
        "opened": [{"key": key, "number": number} for key, number in demand.opened.items()],
    }
