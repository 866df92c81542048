"""Pure detectors: from what a worker says to alerts.

A state (``Watch``) folds over what was said; the same pieces looked at again give the same alerts
under the same keys, so a restart may look again and nothing is told twice.

Source: 4-observability §4; seed 003 §1.
"""

from subagents.domain.detectors.state import Watch as Watch
from subagents.domain.detectors.watch import begin as begin
from subagents.domain.detectors.watch import elapsed as elapsed
from subagents.domain.detectors.watch import ended as ended
from subagents.domain.detectors.watch import is_gathering as is_gathering
from subagents.domain.detectors.watch import next_due_ms as next_due_ms
from subagents.domain.detectors.watch import observe as observe
