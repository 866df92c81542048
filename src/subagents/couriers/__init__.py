"""Ways to push an announcement to its requester; the inbox itself needs none.

``steer`` puts it into the requester's live attempt; others are extensions. There is no courier that
starts a turn in an idle session of ours: a run whose attempt ended gets the results of its children
from the reducer (``lifecycle.reduce``), in one turn; a courier would deliver each of them again.
"""
