"""Doors through which an announcement is pushed; the inbox itself needs none.

``steer`` puts it into the requester's live attempt, ``command`` hands it to the program that the
requester's agent is bound to. There is no courier that starts a turn in an idle session of ours:
a run whose attempt ended is told of its children by the reducer (``lifecycle._follow_up``), in one
turn with all their results, and a courier beside it would tell it of each of them again.
"""
