"""An answer that is read as it came has the attributes of its struct, with the same values."""

import json
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from subagents.api.wire.log_answers import LogPage
from subagents.api.wire.message_answers import Inbox, WorkerRequest
from subagents.api.wire.run_answers import (
    RunDetail,
    RunNode,
    RunPage,
    RunState,
    RunStatus,
    SpawnReceipt,
    WaitResult,
)
from subagents.cli.reading import Answer, read
from subagents.client.client import Client
from subagents.errors import DaemonUnreachable
from subagents.version import __version__

KINDS = [RunPage, RunStatus, WaitResult, SpawnReceipt, Inbox, WorkerRequest]
KINDS += [RunDetail, RunNode, LogPage]


def value_of(kind: inspect.Type, depth: int) -> Any:
    """Something of a type that is not its default."""
    match kind:
        case inspect.Metadata():
            return value_of(kind.type, depth)
        case inspect.UnionType():
            return value_of(
                next(k for k in kind.types if not isinstance(k, inspect.NoneType)), depth
            )
        case inspect.StructType():
            return filled(kind, depth)
        case inspect.ListType():
            return [] if depth > 4 else [value_of(kind.item_type, depth + 1)] * 2
        case inspect.DictType():
            return {}
        case inspect.BoolType():
            return True
        case inspect.IntType():
            return 7
        case inspect.FloatType():
            return 0.5
    return "word"


def filled(kind: inspect.StructType, depth: int = 0) -> msgspec.Struct:
    """A struct of which every field has something."""
    found: msgspec.Struct = kind.cls(
        **{field.name: value_of(field.type, depth) for field in kind.fields}
    )
    return found


def assert_same(answer: Any, struct: Any) -> None:
    if isinstance(struct, list):
        assert len(answer) == len(struct)
        for mine, theirs in zip(answer, struct, strict=True):
            assert_same(mine, theirs)
    elif isinstance(struct, msgspec.Struct):
        known = [name for name in ("is_ok", "shown_state") if hasattr(type(struct), name)]
        for name in (*struct.__struct_fields__, *known):
            assert_same(getattr(answer, name), getattr(struct, name))
    elif isinstance(struct, dict):  # without a struct: whoever wants it reads the document
        assert isinstance(answer, Answer)
    else:
        assert answer == struct


@pytest.mark.requirement("cli:start-up")
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_field_is_there_by_its_name(kind: type[msgspec.Struct]) -> None:
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    plain = kind(**{f.name: value_of(f.type, 0) for f in info.fields if f.required})
    for struct in (filled(info), plain):
        assert_same(Answer(json.loads(msgspec.json.encode(struct))), struct)


@pytest.mark.requirement("cli:start-up")
def test_what_does_not_apply_and_is_left_out_is_none() -> None:
    answer = Answer(json.loads(msgspec.json.encode(RunState(run_id="r-1", phase="queued"))))
    assert (answer.run_id, answer.phase, answer.why, answer.outcome) == (
        "r-1",
        "queued",
        None,
        None,
    )


@pytest.mark.requirement("cli:start-up")
def test_the_answer_of_another_version_is_read_through_its_struct() -> None:
    client = Client("/nowhere")
    for version in (None, "", "0.1.0"):
        client.daemon_version = version
        found = read(client, {"runs": [{"runId": "r-1"}]}, "run_answers:RunPage")
        assert isinstance(found, RunPage)
        assert found.scheduled == []
        with pytest.raises(DaemonUnreachable, match="is not understood"):
            read(client, {"runs": 3}, "run_answers:RunPage")
    client.daemon_version = __version__
    assert isinstance(read(client, {"runs": []}, "run_answers:RunPage"), Answer)
