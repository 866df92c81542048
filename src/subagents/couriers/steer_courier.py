"""Delivery into the live attempt of a requester that is a run of ours."""

from collections.abc import Callable

from subagents.domain.run.outcome import (
    DeferReason,
    Deferred,
    Delivered,
    DeliveryFailed,
    DeliveryOutcome,
    DeliveryPath,
)
from subagents.domain.run.run import Message, Phase, Run
from subagents.domain.run.values import SessionKey
from subagents.errors import RuntimeUnavailable
from subagents.ports import AttemptRef, Runtime


class SteerCourier:
    """See ``ports.Courier``. The message id is the steer's key, so a repeat is one message.

    Args:
        runtime_of: Gives the runtime of a run's newest attempt; only one that can steer is used.
    """

    name = "steer"

    def __init__(self, runtime_of: Callable[[Run], Runtime | None]) -> None:
        self._runtime_of = runtime_of

    def serves(self, target: SessionKey, requester: Run | None) -> bool:  # noqa: ARG002 - the run says it all
        """Whether it is a run whose attempt is live (or just being started) and takes messages.

        Any other run of ours finds the message in its inbox, or in its follow-up turn.
        """
        return (
            requester is not None
            and requester.phase in {Phase.SPAWNING, Phase.RUNNING}
            and requester.resolved.abilities.steer
        )

    async def deliver(
        self,
        run: Run,  # noqa: ARG002 - the message has its text
        message: Message,
        requester: Run | None,
    ) -> DeliveryOutcome:
        """Put the text into the attempt; one that ended meanwhile, or begins, is asked again."""
        if requester is None or requester.phase is not Phase.RUNNING:
            # No failure, which would be given up after half an hour: it passes by itself.
            return Deferred(reason=DeferReason.REQUESTER_BUSY)
        runtime = self._runtime_of(requester)
        if runtime is None:
            text = f'runtime "{requester.resolved.runtime}" is not available here'
            return DeliveryFailed(retryable=True, error=text)
        ref = AttemptRef(
            attempt_id=requester.attempt_id,
            run_id=requester.id,
            number=requester.attempt.number,
            options=requester.resolved.options,
            turns=requester.attempt.turn.number,
        )
        try:
            await runtime.steer(ref, message.text, key=message.id)
        except RuntimeUnavailable:
            # It is between two turns, or over: then its next turn or its inbox has the message.
            return Deferred(reason=DeferReason.REQUESTER_BUSY)
        return Delivered(path=DeliveryPath.STEERED)
