"""The commands `rlcore evaluate`, `watch` and `export`: their arguments. What they do is imported when they are called."""
