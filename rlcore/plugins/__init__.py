"""Plugins and their components: found, imported, registered, and where those are that are not installed."""
