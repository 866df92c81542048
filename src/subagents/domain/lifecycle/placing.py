"""A run with a place: which node has its attempt, and where its worktree is there."""

from subagents.domain.lifecycle.steps import with_attempt
from subagents.domain.rules.places import with_tree
from subagents.domain.run.effects import Transition
from subagents.domain.run.events import AttemptPlaced, WorktreePlanned
from subagents.domain.run.run import Run
from subagents.domain.run.values import replace
from subagents.domain.run.workspace import PlacedTree


def attempt_placed(run: Run, event: AttemptPlaced) -> Transition:
    if event.attempt != run.attempt.number:
        return Transition(run, stale=True)
    return Transition(with_attempt(run, replace(run.attempt, node=event.node)))


def worktree_planned(run: Run, event: WorktreePlanned) -> Transition:
    if event.worktree.node != run.attempt.node:
        return Transition(run, stale=True)
    tree = PlacedTree(worktree=event.worktree, cwd=event.cwd)
    return Transition(replace(run, placed_tree=tree, resolved=with_tree(run.resolved, tree)))
