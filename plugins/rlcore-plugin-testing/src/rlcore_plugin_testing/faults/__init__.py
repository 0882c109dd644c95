"""Tools that break a run on purpose, and that judge from outside what is left of it."""
