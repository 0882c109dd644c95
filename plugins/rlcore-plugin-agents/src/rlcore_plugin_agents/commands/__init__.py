"""The commands `rlcore evaluate`, `watch` and `export`; what each does is imported when it is called."""
