"""Curves, tables and pages about runs, from their folders alone."""
