"""The turn that an assignment names: what is needed is put together, and it runs."""

import asyncio
import gc
import os
import signal
import sys
from pathlib import Path
from typing import Final

import msgspec
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from subagents.errors import SubagentsError
from subagents.extensions.llm.agent_loop.event_output import EventSink, PrintedEvents
from subagents.extensions.llm.agent_loop.incoming import Incoming
from subagents.extensions.llm.agent_loop.loop import AgentTurn, conversation_of
from subagents.extensions.llm.agent_loop.model_request import ModelClient
from subagents.extensions.llm.agent_loop.models import addressed, key_of, model_of, settings_of
from subagents.extensions.llm.agent_loop.purse import Purse
from subagents.extensions.llm.agent_loop.shared_limits import LimitGate, fingerprint
from subagents.extensions.llm.agent_loop.tools.daemon_tools import DaemonTools
from subagents.extensions.llm.agent_loop.tools.loop_tools import LoopTool, own_tools
from subagents.extensions.llm.agent_loop.tools.path_bounds import PathBounds
from subagents.extensions.llm.agent_loop.tools.shell_tool import Shell
from subagents.extensions.llm.llm_assignment import Assignment

EXIT_TERMINATED: Final = 128 + signal.SIGTERM


async def work(assignment: Assignment, emit: EventSink) -> None:
    """Do one turn and print it."""
    emit("session", sessionId=assignment.session_id)
    try:
        conversation = conversation_of(assignment)
    except ValueError as error:
        emit("result", text="", isError=True, error=str(error))
        return
    incoming = Incoming()
    key = key_of(assignment)
    hidden = () if assignment.key_env is None else (assignment.key_env,)
    shell = Shell(assignment.cwd, hidden)
    daemon_tools = DaemonTools(assignment.tools_deny, lambda: incoming.has_messages)
    try:
        tools = own_tools(
            assignment.tools,
            PathBounds(assignment.cwd),
            shell,
            shell_timeout_s=assignment.shell_timeout_s,
        )
        tools += await daemon_tools.tools()
        model, settings = model_of(assignment), settings_of(assignment)
        # The last import. What they made stays as long as this process: no use to look through it.
        gc.freeze()
        gc.enable()
        parameters = ModelRequestParameters(function_tools=[_definition(tool) for tool in tools])
        is_same_attempt = conversation.usage.tokens_in is not None
        purse = Purse(
            daemon_tools if daemon_tools.is_there else None,
            assignment,
            model=model,
            parameters=parameters,
            settings=settings,
            emit=emit,
            counted_from=0 if is_same_attempt else len(conversation.messages),
        )
        model_client = ModelClient(
            model,
            provider=assignment.provider,
            purse=purse,
            parameters=parameters,
            gate=LimitGate(
                Path(assignment.limits_dir),
                fingerprint(assignment.provider, assignment.base_url, key),
            ),
            emit=emit,
            request_timeout_s=assignment.request_timeout_s,
            patience_s=assignment.limit_patience_s,
        )
        turn = AgentTurn(
            assignment,
            conversation=conversation,
            model_client=model_client,
            tools=tools,
            daemon_tools=daemon_tools,
            incoming=incoming,
            emit=emit,
        )
        await turn.run()
    except SubagentsError as error:
        emit("result", text="", isError=True, error=error.message)
    finally:
        incoming.close()
        await shell.end_leftovers()


def _definition(tool: LoopTool) -> ToolDefinition:
    return ToolDefinition(
        name=tool.name, description=tool.description, parameters_json_schema=tool.schema
    )


async def _main(assignment: Assignment) -> int:
    loop = asyncio.get_running_loop()
    task = asyncio.create_task(work(assignment, PrintedEvents()))
    # What is under way is stopped, the commands of the shell as well; the conversation is kept.
    loop.add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        return EXIT_TERMINATED
    return 0


def main() -> int:
    """Read the assignment that the command line names, and work; returns the exit code."""
    if len(sys.argv) != 2:
        sys.stderr.write("usage: python -m subagents.extensions.llm.agent_loop ASSIGNMENT\n")
        return 2
    assignment = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Assignment)
    return asyncio.run(_main(addressed(assignment, os.environ)))
