"""Presets of this plugin: TOML files, which `rlcore init` fills in."""
