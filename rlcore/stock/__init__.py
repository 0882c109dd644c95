"""The stock hooks, one per file."""
