"""From Python to a ready trainer."""
