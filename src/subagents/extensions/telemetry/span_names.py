"""Names of span attributes: OpenTelemetry's for generative AI, and ours.

The conventions are still in development and have moved between packages, so the strings stand
here, as they were in ``open-telemetry/semantic-conventions-genai`` in ``SCHEMA_DATE``. Nothing else
in this package spells one.
"""

from typing import Final

SCHEMA_DATE: Final = "2026-11"

# -- generative AI ------------------------------------------------------------------------------

OPERATION_NAME: Final = "gen_ai.operation.name"
PROVIDER_NAME: Final = "gen_ai.provider.name"
AGENT_ID: Final = "gen_ai.agent.id"
AGENT_NAME: Final = "gen_ai.agent.name"
AGENT_DESCRIPTION: Final = "gen_ai.agent.description"
CONVERSATION_ID: Final = "gen_ai.conversation.id"
REQUEST_MODEL: Final = "gen_ai.request.model"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
CACHE_READ_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
CACHE_WRITE_TOKENS: Final = "gen_ai.usage.cache_creation.input_tokens"
INPUT_MESSAGES: Final = "gen_ai.input.messages"
"""Content; off unless ``telemetry.content`` says so. So is the next one."""
OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
TOOL_NAME: Final = "gen_ai.tool.name"
ERROR_TYPE: Final = "error.type"

INVOKE_AGENT: Final = "invoke_agent"
EXECUTE_TOOL: Final = "execute_tool"

PROVIDERS: Final = {"claude-code": "anthropic", "codex": "openai"}
"""Runtime → well-known provider; any other runtime is its own."""

# -- ours ---------------------------------------------------------------------------------------

RUN_ID: Final = "subagents.run.id"
LABEL: Final = "subagents.label"
RUNTIME: Final = "subagents.runtime"
PARENT_ID: Final = "subagents.parent.id"
"""The run that spawned it."""
DEPTH: Final = "subagents.depth"
ATTEMPT: Final = "subagents.attempt"
"""The attempt's number, from 1; 0 = the run ended before any attempt."""
RETRY_OF: Final = "subagents.retry_of"
"""The attempt before, or the ended run that this one repeats."""
OUTCOME: Final = "subagents.outcome"
CONTRACT_STATUS: Final = "subagents.contract.status"
DELIVERY_PATH: Final = "subagents.delivery.path"
DELIVERY_OUTCOME: Final = "subagents.delivery.outcome"
DELIVERY_TARGET: Final = "subagents.delivery.target"
COST_USD: Final = "subagents.cost_usd"
QUEUED_MS: Final = "subagents.queued_ms"
"""The time from the spawn to the first slot: waiting for other runs and for the lane together."""
TOOLS_LEFT_OUT: Final = "subagents.tools.left_out"
EVENTS_LEFT_OUT: Final = "subagents.events.left_out"
CHECKS: Final = "subagents.checks"
CHECKS_FAILED: Final = "subagents.checks.failed"
REQUEST_ID: Final = "subagents.request.id"
DECISION: Final = "subagents.decision"
ALERT_KIND: Final = "subagents.alert.kind"
LINK_KIND: Final = "subagents.link"
"""``retry_of``: to the run's first attempt. ``parent``: to one that ended before this began."""
