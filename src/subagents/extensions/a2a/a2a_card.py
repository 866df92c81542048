"""The card by which an agent of ours presents itself to A2A clients."""

from collections.abc import Mapping
from typing import Any, Final

from a2a.server.request_handlers.response_helpers import agent_card_to_dict
from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    HTTPAuthSecurityScheme,
    SecurityRequirement,
    SecurityScheme,
    StringList,
)
from a2a.utils.constants import TransportProtocol

from subagents.config.settings import Agent

PROTOCOLS: Final = ("1.0", "0.3")
TEXT: Final = "text/plain"


def card(agent_id: str, agent: Agent, *, url: str, version: str, pushes: bool) -> Mapping[str, Any]:
    """The card's JSON document.

    Args:
        agent_id: Of the configuration.
        agent: Its configuration.
        url: Where it is called.
        version: Ours.
        pushes: Whether the user lets states be pushed anywhere.
    """
    words = agent.description or f'Does tasks as the agent "{agent_id}" of subagents.'
    found = AgentCard(
        name=agent_id,
        description=words,
        version=version,
        capabilities=AgentCapabilities(streaming=True, push_notifications=pushes),
        default_input_modes=[TEXT, "application/json"],
        default_output_modes=[TEXT],
        supported_interfaces=[
            AgentInterface(
                url=url, protocol_binding=TransportProtocol.JSONRPC, protocol_version=protocol
            )
            for protocol in PROTOCOLS
        ],
        skills=[
            AgentSkill(
                id="task",
                name="task",
                description=words,
                tags=[*agent.capabilities.tags] or ["task"],
            )
        ],
        security_schemes={
            "bearer": SecurityScheme(
                http_auth_security_scheme=HTTPAuthSecurityScheme(
                    scheme="Bearer", description="The line in the daemon's operator.token."
                )
            )
        },
        security_requirements=[SecurityRequirement(schemes={"bearer": StringList()})],
    )
    return agent_card_to_dict(found)
