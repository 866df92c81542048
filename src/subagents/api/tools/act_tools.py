"""Tools that change a run or answer it: ``sessions_send``, ``respond_orchestrator_request``."""

from typing import Final

from subagents.api.answers import run_building, run_questions
from subagents.api.calls.call import find_run
from subagents.api.tools.tool import Answer, Call, picked
from subagents.api.tools.tool_arguments import RespondArguments, SendArguments, decoded
from subagents.api.wire import requests as wire
from subagents.api.wire.decoding import one_of
from subagents.domain.run.usage import Amounts
from subagents.engine.runs.sessions import MODES, STEER
from subagents.errors import UsageError

SENT: Final = ("status", "runId", "sessionKey", "label")
RESPONDED: Final = ("status", "requestId", "runId", "label", "decision", "by", "answeredAt")
_SENT: Final = {
    "steered": "Put into its live turn.",
    "queued": "Kept for its next turn.",
    "accepted": "Kept for its next turn.",
}
_STARTED: Final = "A new run continues its session; its end comes to your inbox."


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
    return await steer(call, target, asked.message, mode=mode, added=asked.added)


async def steer(
    call: Call, target: str, message: str, *, mode: str = STEER, added: Amounts | None = None
) -> Answer:
    """As ``send``, to the run that any selector names."""
    run = await find_run(call.services, target, call.caller)
    sent = await call.services.send(
        run,
        message,
        by=call.caller.session,
        mode=mode,
        key=call.call_id,
        is_operator=False,  # a tool gives no person's rights
        ceiling=call.caller.ceiling,
        added=added,
    )
    now = sent.run
    started = ("continues", *(("warnings",) if sent.warnings else ())) if sent.is_new else ()
    structured = picked(run_building.sent(sent), (*SENT, *started))
    what = _STARTED if sent.is_new else _SENT[sent.status]
    return Answer(text=f"{sent.status}: {now.id}. {what}", structured=structured)


async def respond(call: Call) -> Answer:
    """Answer a worker's question; the first answer counts."""
    asked = decoded(call, RespondArguments)
    return await answer_request(call, asked.request_id, asked.response, asked.decision)


async def answer_request(call: Call, request_id: str, response: str, decision: str) -> Answer:
    """As ``respond``, with the answer in words of the caller's tool."""
    body = wire.RespondBody(response=response, decision=decision)
    found = await run_questions.respond(call.services, call.caller, request_id, body)
    how = f" ({found.decision} by {found.by})" if found.status != "answered" else ""
    text = f"{found.status}: {found.request_id}{how}"
    return Answer(text=text, structured=picked(found, RESPONDED))
