"""Pure detectors: from what a worker says to alerts.

A state (``Watch``) folds over the pieces of its output; the same pieces looked at again give the
same alerts under the same keys, so a restart may look again and nothing is reported twice.
"""

from subagents.domain.alerts.detectors.detection import begin as begin
from subagents.domain.alerts.detectors.detection import elapsed as elapsed
from subagents.domain.alerts.detectors.detection import ended as ended
from subagents.domain.alerts.detectors.detection import is_gathering as is_gathering
from subagents.domain.alerts.detectors.detection import next_due_ms as next_due_ms
from subagents.domain.alerts.detectors.detection import observe as observe
from subagents.domain.alerts.detectors.detector_state import FailedCall as FailedCall
from subagents.domain.alerts.detectors.detector_state import Watch as Watch
from subagents.domain.alerts.detectors.findings import Finding as Finding
