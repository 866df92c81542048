"""What the user allows agents without being asked, for all nodes of a cluster: encrypted rows."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Final

import msgspec

from subagents.extensions.cluster.shared.run_tables import RunTables, data_of

_decode: Final = msgspec.json.Decoder(tuple[str, str]).decode


class AllowedCallRows:
    """See ``ports.AllowedCallLog``.

    Args:
        tables: Where they are.
        encrypt: See ``EnvironmentRows``.
        decrypt: See ``EnvironmentRows``.
    """

    def __init__(
        self,
        tables: RunTables,
        encrypt: Callable[[bytes], bytes],
        decrypt: Callable[[bytes], bytes],
    ) -> None:
        self._tables, self._encrypt, self._decrypt = tables, encrypt, decrypt

    def read(self) -> Mapping[str, Sequence[str]]:
        """See ``ports.AllowedCallLog.read``; what no node wrote is left out."""
        found: dict[str, list[str]] = {}
        for (sealed,) in self._tables.ask("select_allowed_calls"):
            with suppress(ValueError):
                agent_id, call = _decode(self._decrypt(data_of(sealed)))
                found.setdefault(agent_id, []).append(call)
        return found

    def change(self, agent_id: str, call: str, *, allow: bool) -> None:
        """See ``ports.AllowedCallLog.change``."""
        named = msgspec.json.encode((agent_id, call))
        key = sha256(named).hexdigest()
        if allow:
            self._tables.write(("put_allowed_call", [(key, self._encrypt(named))]))
        else:
            self._tables.write(("delete_allowed_call", [(key,)]))
