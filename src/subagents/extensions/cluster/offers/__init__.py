"""Attempts that wait for a place, as rows."""
