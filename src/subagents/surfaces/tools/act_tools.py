"""Tools that change a run or answer it: ``sessions_send``, ``respond_orchestrator_request``.

Source: 3-tools; 2-lifecycle §10.
"""

from typing import Final

from subagents.errors import UsageError
from subagents.surfaces import requests, wire
from subagents.surfaces.call import find_run
from subagents.surfaces.decoding import one_of
from subagents.surfaces.tools.arguments import RespondArguments, SendArguments, decoded
from subagents.surfaces.tools.tool import Answer, Call, Document

MODES: Final = ("steer", "followup")
_SENT: Final = {
    "steered": "Put into its live turn.",
    "queued": "Kept for its next turn.",
    "accepted": "Kept for its next turn.",
}


async def send(call: Call) -> Answer:
    """A message for a child's agent, into its live turn or for the next one."""
    asked = decoded(call, SendArguments)
    mode = one_of("mode", asked.mode, MODES)
    if (asked.session_key is None) == (asked.label is None):
        raise UsageError(
            "give sessionKey or label, one of them: it names the run to send to",
            details={"field": "sessionKey"},
        )
    target = asked.session_key or asked.label or ""
    return await steer(call, target, asked.message, next_turn=mode == "followup")


async def steer(call: Call, target: str, message: str, *, next_turn: bool = False) -> Answer:
    """See ``send``; ``target`` is any selector."""
    run = await find_run(call.used, target, call.caller)
    taken = await call.used.engine.steer(
        run.id, message, by=call.caller.session, next_turn=next_turn
    )
    structured: Document = {
        "status": taken,
        "runId": run.id,
        "sessionKey": run.session_key,
        "label": run.resolved.label,
    }
    return Answer(text=f"{taken}: {run.id}. {_SENT[taken]}", structured=structured)


async def respond(call: Call) -> Answer:
    """Answer a worker's question; the first answer counts."""
    asked = decoded(call, RespondArguments)
    return await answer_request(call, asked.request_id, asked.response, asked.decision)


async def answer_request(call: Call, request_id: str, response: str, decision: str) -> Answer:
    """See ``respond``."""
    body = wire.RespondBody(response=response, decision=decision)
    found = await requests.respond(call.used, call.caller, request_id, body)
    structured: Document = {
        "status": found["status"],
        "requestId": found["requestId"],
        "runId": found["runId"],
        "label": found["label"],
        "decision": found["decision"],
        "by": found["by"],
        "answeredAt": found["answeredAt"],
    }
    how = f" ({found['decision']} by {found['by']})" if found["status"] != "answered" else ""
    return Answer(text=f"{found['status']}: {found['requestId']}{how}", structured=structured)
