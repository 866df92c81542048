"""What an owner and a place say to each other about a run's files: JSON, each answer one struct.

``POST /node/v1/files/<call>`` with a ``WorkplaceCall``.
"""

from collections.abc import Callable
from typing import Final, Literal

import msgspec

from subagents.domain.run import linked_runs
from subagents.domain.run.outcome import Verification
from subagents.domain.run.run import Run
from subagents.domain.run.values import Value
from subagents.domain.run.workspace import Changes
from subagents.ports import Before, Diff, Planned

PATH: Final = "/node/v1/files/"

CallName = Literal[
    "plan", "prepare", "before", "verify", "existing", "changes", "diff", "remove_clean"
]


class WorkplaceCall(Value, frozen=True, kw_only=True, omit_defaults=True):
    """Arguments of a call; which of them it has, ``ports.Workplace`` says."""

    run: Run
    attempt: int = 0
    afresh: bool = False
    env: dict[str, str] = {}
    paths: tuple[str, ...] = ()
    path: str | None = None
    bytes_max: int = 0


def _from_list(kind: type, found: object) -> object:
    return found if kind is object else linked_runs.from_list(kind, found)


encode = msgspec.json.Encoder(enc_hook=linked_runs.as_list).encode
decode_call = msgspec.json.Decoder(WorkplaceCall, dec_hook=_from_list).decode
decode_planned = msgspec.json.Decoder(Planned).decode
decode_before = msgspec.json.Decoder(Before).decode
decode_verification = msgspec.json.Decoder(Verification).decode
decode_paths = msgspec.json.Decoder(tuple[str, ...]).decode
decode_changes: Callable[[bytes], Changes | None] = msgspec.json.Decoder(Changes | None).decode
decode_diff = msgspec.json.Decoder(Diff).decode
decode_flag = msgspec.json.Decoder(bool).decode
