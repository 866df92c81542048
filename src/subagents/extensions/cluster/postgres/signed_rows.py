"""Which columns of which rows are signed: whatever a node starts work from.

Rows are those of ``store.rows``. What is written and what is read has its signatures behind its
other columns.
"""

from typing import TYPE_CHECKING, TypeVar

from subagents.store import rows
from subagents.store.rows import Row

if TYPE_CHECKING:  # of an extra that a daemon alone does not need
    from subagents.extensions.cluster.trust.signing import Signer

T = TypeVar("T")


class SignedRows:
    """Signs rows, and lets none pass that nobody signed.

    Args:
        signer: None = a daemon alone without a secret: nothing is signed or asked for.
    """

    def __init__(self, signer: "Signer | None") -> None:
        self._signer = signer

    def written(self, name: str, row: Row) -> Row:
        """The parameters of a statement, with those that it has for signatures."""
        match name:
            case "insert_run":
                origin = self._sign("origin", row[1], row[14])
                return (*row, origin, self._sign("state", row[1], row[2], row[15], row[22]))
            case "update_run" | "end_run" | "archive_run":
                return (*row, self._sign("state", row[-1], row[0], row[2], row[4]))
            case "update_origin":
                return (*row, self._sign("origin", row[2], row[0]))
            case "insert_event":
                return (*row, self._sign("event", *row[1:7]))
            case "put_schedule":
                return (*row, self._sign("schedule", *row[:2]))
        return row

    def _sign(self, kind: str, *columns: object) -> bytes | None:
        return None if self._signer is None else self._signer.sign(kind, *columns)

    def kind(self, kind: rows.Kind[T]) -> rows.Kind[T]:
        """How rows of a kind are read that have signatures; the same where they have none."""
        proven = self.run if kind.names is rows.RUN.names else None
        proven = self.schedule if kind.names is rows.SCHEDULE.names else proven
        if proven is None:
            return kind
        return rows.Kind(lambda row: kind.read(proven(row)), kind.names, kind.run_id)

    def run(self, row: Row) -> Row:
        """A row of ``run`` without its signatures; like the others it raises ``ValueError``."""
        *stored, origin, state = row
        self._prove(origin, "origin", row[1], row[14])
        self._prove(state, "state", row[1], row[2], row[15], row[22])
        return (*stored,)

    def event(self, row: Row) -> Row:
        """The same of ``journal``."""
        *stored, signature = row
        self._prove(signature, "event", *row[1:7])
        return (*stored,)

    def schedule(self, row: Row) -> Row:
        """The same of ``schedule``."""
        *stored, signature = row
        self._prove(signature, "schedule", *row[:2])
        return (*stored,)

    def _prove(self, signature: object, kind: str, *columns: object) -> None:
        if self._signer is not None:
            self._signer.prove(signature, kind, *columns)

    def again(self, name: str, kind: rows.Kind[T], row: Row) -> Row | None:
        """A stored row as the statement of that name would write it; None = it is, or damaged."""
        stored = row[: -2 if name == "insert_run" else -1]
        try:
            kind.read(stored)
        except rows.DAMAGE:
            return None
        signed = self.written(name, stored)
        return None if signed == row else signed
