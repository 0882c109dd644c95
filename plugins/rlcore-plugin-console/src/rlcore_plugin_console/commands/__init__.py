"""The commands that the plugin adds, one per file."""
