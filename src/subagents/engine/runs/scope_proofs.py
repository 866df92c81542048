"""Whether a scope of tools can be given: what probes found of the program that would keep to it.

Source: 8-field-failures "GENesis-AGI PR #1391", "spool #121"; docs/decisions/0025.
"""

from collections.abc import Callable, Mapping
from functools import partial

from subagents.config.scope_probes import Proof
from subagents.config.settings import Agent
from subagents.domain.run.spec import Abilities
from subagents.errors import ConfigError, Forbidden
from subagents.ports import OffLoop, Runtime, abilities_of

ProofOf = Callable[[str, Agent], Proof]
"""Of an agent's id and its table; blocking."""


def no_proof_needed(_agent_id: str, _agent: Agent) -> Proof:
    """For engines whose workers are no programs of others."""
    return Proof()


class Proofs:
    """Refuses scopes that were seen broken, and says once which ones were never tried."""

    def __init__(self, proof_of: ProofOf, off_loop: OffLoop) -> None:
        self._proof_of = proof_of
        self._off_loop = off_loop
        self._said: set[str] = set()

    async def check(self, agent_id: str, agent: Agent) -> tuple[str, ...]:
        """Warnings for the receipt of a spawn with a scope.

        Raises:
            Forbidden: A probe saw a denied tool work.
        """
        proof = await self._off_loop(partial(self._proof_of, agent_id, agent))
        if proof.refusal is not None:
            raise Forbidden(
                proof.refusal,
                guardrail="tools",
                hint="spawn it without a scope, choose another agent, or update the program and "
                f"try again: subagents doctor --probe {agent_id}",
            )
        if proof.warning is None or proof.warning in self._said:
            return ()
        self._said.add(proof.warning)
        return (proof.warning,)


def abilities_here(runtimes: Mapping[str, Runtime], agent: Agent) -> Abilities | None:
    """What that agent's runtime can do for it; None = it cannot work here as configured."""
    runtime = runtimes.get(agent.runtime or "")
    if runtime is None:
        return None
    try:
        runtime.check(agent.options)
    except ConfigError:
        return None
    return abilities_of(runtime, agent.options)
