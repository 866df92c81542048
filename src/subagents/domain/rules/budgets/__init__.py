"""Budgets of a run and all below it, caps over runs that are no tree, and what both reserve."""
