"""A small ACP agent, made with the ``agent-client-protocol`` package: a loop around one model.

It asks the Anthropic Messages API at ``ANTHROPIC_BASE_URL`` and has two tools of its own,
``write`` and ``shell``, and those of the MCP servers that the client names. In its mode ``ask`` it
asks before each of them. It is as unkind as the real ones: a cancelled turn leaves its shell child
alive, its MCP servers get next to nothing of its environment, its stdout must be a pipe, and it
writes a line there that is no JSON.

``ACP_AGENT_HOME``    where its sessions are kept
``ACP_AGENT_SECOND``  what a second prompt does: ``steers`` (default), ``queues`` or ``cancels``
"""

import asyncio
import contextlib
import json
import os
import sys
import urllib.error
import urllib.request
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import acp
from acp import schema
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

Document = dict[str, Any]

MODES = ("ask", "free")
HOME = Path(os.environ.get("ACP_AGENT_HOME", ".acp-agent"))
SECOND = os.environ.get("ACP_AGENT_SECOND", "steers")
DOLLARS_PER_TOKEN = 3e-6
OWN_TOOLS: dict[str, Document] = {
    "write": {"path": {"type": "string"}, "content": {"type": "string"}},
    "shell": {"command": {"type": "string"}},
}
KINDS: dict[str, Any] = {"write": "edit", "shell": "execute"}
Caller = Callable[[Document], Awaitable[str]]


@dataclass(slots=True)
class Session:
    id: str
    cwd: str
    messages: list[Document] = field(default_factory=list)
    mode: str = "ask"
    model: str = "none"
    served: dict[str, tuple[Document, Caller]] = field(default_factory=dict)
    """Tools of MCP servers: what the model is told, and how they are called."""
    steered: list[str] = field(default_factory=list)
    turn: "asyncio.Task[schema.PromptResponse] | None" = None
    is_cancelled: bool = False
    dollars: float = 0.0

    def save(self) -> None:
        HOME.mkdir(parents=True, exist_ok=True)
        told = {"messages": self.messages, "dollars": self.dollars}
        (HOME / f"{self.id}.json").write_text(json.dumps(told))


class LoopAgent:
    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}
        self.servers: list[asyncio.Task[None]] = []

    def on_connect(self, conn: acp.Client) -> None:
        self.client = conn

    async def initialize(
        self, protocol_version: int, *_: Any, **__: Any
    ) -> schema.InitializeResponse:
        return schema.InitializeResponse(
            protocol_version=min(protocol_version, acp.PROTOCOL_VERSION),
            agent_capabilities=schema.AgentCapabilities(load_session=True),
            agent_info=schema.Implementation(name="loop-agent", version="1"),
        )

    async def new_session(
        self, cwd: str, *_: Any, mcp_servers: Any = None, **__: Any
    ) -> schema.NewSessionResponse:
        session = Session(id=uuid.uuid4().hex, cwd=cwd)
        await self._connect(session, mcp_servers or [])
        self.sessions[session.id] = session
        return schema.NewSessionResponse(session_id=session.id, **_offer(session))

    async def load_session(
        self, cwd: str, session_id: str, *_: Any, mcp_servers: Any = None, **__: Any
    ) -> schema.LoadSessionResponse:
        told = json.loads((HOME / f"{session_id}.json").read_text())
        session = Session(session_id, cwd, told["messages"], dollars=told["dollars"])
        await self._connect(session, mcp_servers or [])
        self.sessions[session_id] = session
        for text in _assistant_texts(session.messages):
            await self._tell(session, acp.update_agent_message_text(f"told before: {text}"))
        return schema.LoadSessionResponse(**_offer(session))

    async def set_session_mode(
        self, session_id: str, mode_id: str, **_: Any
    ) -> schema.SetSessionModeResponse:
        self.sessions[session_id].mode = mode_id
        return schema.SetSessionModeResponse()

    async def set_config_option(
        self, config_id: str, session_id: str, value: Any, **_: Any
    ) -> schema.SetSessionConfigOptionResponse:
        session = self.sessions[session_id]
        if config_id != "model":
            raise acp.RequestError.invalid_params({"configId": config_id})
        session.model = str(value)
        return schema.SetSessionConfigOptionResponse(
            config_options=_offer(session)["config_options"]
        )

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> schema.PromptResponse:
        session = self.sessions[session_id]
        text = "\n".join(block.text for block in prompt if block.type == "text")
        if session.turn is not None and not session.turn.done():
            if SECOND == "steers":
                session.steered.append(text)
                return await asyncio.shield(session.turn)
            if SECOND == "cancels":
                session.is_cancelled = True
            await asyncio.wait([session.turn])
        session.is_cancelled = False
        session.turn = asyncio.create_task(self._turn(session, text))
        return await session.turn

    async def cancel(self, session_id: str, **_: Any) -> None:
        self.sessions[session_id].is_cancelled = True

    # -- the turn ----------------------------------------------------------------------------

    async def _turn(self, session: Session, text: str) -> schema.PromptResponse:
        session.messages.append({"role": "user", "content": text})
        tokens_in = tokens_out = 0
        while not session.is_cancelled:
            answer = await asyncio.to_thread(_ask, session, self._tools(session))
            tokens_in += answer["usage"]["input_tokens"]
            tokens_out += answer["usage"]["output_tokens"]
            session.messages.append({"role": "assistant", "content": answer["content"]})
            await self._say(session, answer)
            calls = [block for block in answer["content"] if block["type"] == "tool_use"]
            results = [await self._use(session, call) for call in calls]
            news = [{"type": "text", "text": each} for each in session.steered]
            session.steered.clear()
            session.save()
            if not results and not news:
                break
            session.messages.append({"role": "user", "content": results + news})
        used = schema.Usage(
            input_tokens=tokens_in, output_tokens=tokens_out, total_tokens=tokens_in + tokens_out
        )
        reason: Any = "cancelled" if session.is_cancelled else "end_turn"
        return schema.PromptResponse(stop_reason=reason, usage=used)

    async def _say(self, session: Session, answer: Document) -> None:
        for block in answer["content"]:
            told = block.get("thinking") or block.get("text") or ""
            write = (
                acp.update_agent_thought_text
                if block["type"] == "thinking"
                else acp.update_agent_message_text
            )
            for piece in (told[: len(told) // 2], told[len(told) // 2 :]):
                if piece:
                    await self._tell(session, write(piece))
        used = answer["usage"]
        session.dollars += (used["input_tokens"] + used["output_tokens"]) * DOLLARS_PER_TOKEN
        cost = schema.Cost(amount=session.dollars, currency="USD")
        update = schema.UsageUpdate(
            session_update="usage_update", used=used["input_tokens"], size=200_000, cost=cost
        )
        await self._tell(session, update)

    async def _use(self, session: Session, call: Document) -> Document:
        name, given, call_id = call["name"], call["input"], call["id"]
        await self._tell(
            session,
            acp.start_tool_call(
                call_id, name, kind=KINDS.get(name, "other"), status="pending", raw_input=given
            ),
        )
        text, is_error = "refused by the user", True
        if session.mode == "free" or await self._permitted(session, call):
            await self._tell(session, acp.update_tool_call(call_id, status="in_progress"))
            text, is_error = await self._run(session, name, given)
        await self._tell(
            session,
            acp.update_tool_call(
                call_id,
                status="failed" if is_error else "completed",
                content=[acp.tool_content(acp.text_block(text))],
            ),
        )
        result: Document = {"type": "tool_result", "tool_use_id": call_id, "content": text}
        return {**result, "is_error": True} if is_error else result

    async def _permitted(self, session: Session, call: Document) -> bool:
        name = call["name"]
        answer = await self.client.request_permission(
            session_id=session.id,
            tool_call=schema.ToolCallUpdate(
                tool_call_id=call["id"], title=name, kind=KINDS.get(name, "other")
            ),
            options=[
                schema.PermissionOption(option_id="never", name="Never", kind="reject_always"),
                schema.PermissionOption(option_id="yes", name="Yes", kind="allow_once"),
                schema.PermissionOption(option_id="no", name="No", kind="reject_once"),
            ],
        )
        return getattr(answer.outcome, "option_id", None) == "yes"

    async def _run(self, session: Session, name: str, given: Document) -> tuple[str, bool]:
        try:
            if name in session.served:
                return await session.served[name][1](given), False
            if name == "write":
                return _write(Path(session.cwd, given["path"]), given["content"]), False
            if name == "shell":
                return await self._shell(session, given["command"])
        except Exception as error:  # noqa: BLE001 - the model hears of it
            return f"{type(error).__name__}: {error}", True
        return f"no tool {name}", True

    async def _shell(self, session: Session, command: str) -> tuple[str, bool]:
        child = await asyncio.create_subprocess_exec(
            *("/bin/sh", "-c", command),
            cwd=session.cwd,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        reading = asyncio.create_task(child.communicate())
        while not reading.done():
            if session.is_cancelled:
                reading.cancel()  # and the child lives on
                return "cancelled", True
            await asyncio.wait([reading], timeout=0.02)
        out, _ = reading.result()
        return out.decode(errors="replace"), child.returncode != 0

    def _tools(self, session: Session) -> list[Document]:
        own = [
            {"name": name, "input_schema": {"type": "object", "properties": properties}}
            for name, properties in OWN_TOOLS.items()
        ]
        return own + [tool for tool, _ in session.served.values()]

    async def _tell(self, session: Session, update: Any) -> None:
        await self.client.session_update(session_id=session.id, update=update)

    # -- MCP ---------------------------------------------------------------------------------

    async def _connect(self, session: Session, servers: list[Any]) -> None:
        for server in servers:
            ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.servers.append(asyncio.create_task(_serve(session, server, ready)))
            await ready


async def _serve(session: Session, server: Any, ready: "asyncio.Future[None]") -> None:
    """Hold one MCP server for as long as the agent lives: what opens it must close it."""
    parameters = StdioServerParameters(command=server.command, args=server.args)
    try:
        async with stdio_client(parameters) as streams, ClientSession(*streams) as client:
            await client.initialize()
            for tool in (await client.list_tools()).tools:
                name = f"mcp__{server.name}__{tool.name}"
                told = {"name": name, "input_schema": tool.input_schema}

                async def call(given: Document, name: str = tool.name) -> str:
                    result = await client.call_tool(name, given)
                    return "\n".join(getattr(block, "text", "") for block in result.content)

                session.served[name] = (told, call)
            ready.set_result(None)
            await asyncio.Event().wait()
    except Exception as error:  # noqa: BLE001 - the session could not be opened
        if not ready.done():
            ready.set_exception(acp.RequestError.internal_error({"details": str(error)}))


def _write(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return f"wrote {path}"


def _ask(session: Session, tools: list[Document]) -> Document:
    body = {
        "model": session.model,
        "max_tokens": 1000,
        "messages": session.messages,
        "tools": tools,
    }
    request = urllib.request.Request(  # noqa: S310 - the test's own server
        os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages",
        data=json.dumps(body).encode(),
        headers={"content-type": "application/json", "x-api-key": "x"},
    )
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:  # noqa: S310
            found: Document = json.load(answer)
            return found
    except urllib.error.HTTPError as error:
        after = error.headers.get("retry-after")
        data: Document = {"status": error.code, "details": f"the model answered {error.code}"}
        if after:
            data["retryAfter"] = float(after)
        error.close()
        raise acp.RequestError(-32603, "Internal error", data) from None


def _offer(session: Session) -> Document:
    modes = [schema.SessionMode(id=each, name=each) for each in MODES]
    options = [schema.SessionConfigSelectOption(value="test/scripted", name="scripted")]
    model = schema.SessionConfigOptionSelect(
        id="model",
        name="Model",
        category="model",
        type="select",
        current_value=session.model,
        options=options,
    )
    return {
        "modes": schema.SessionModeState(current_mode_id=session.mode, available_modes=modes),
        "config_options": [model],
    }


def _assistant_texts(messages: list[Document]) -> list[str]:
    return [
        block["text"]
        for message in messages
        if message["role"] == "assistant"
        for block in message["content"]
        if block["type"] == "text"
    ]


async def main() -> None:
    print("loop-agent 1: not JSON, as some print", flush=True)  # noqa: T201
    agent = LoopAgent()
    with contextlib.suppress(asyncio.CancelledError):
        await acp.run_agent(cast("acp.Agent", agent))
    for server in agent.servers:
        server.cancel()
    await asyncio.gather(*agent.servers, return_exceptions=True)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
