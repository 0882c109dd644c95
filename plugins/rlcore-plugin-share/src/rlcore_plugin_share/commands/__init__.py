"""The commands `rlcore push`, `rlcore pull` and `rlcore plugins search`, one per file."""
