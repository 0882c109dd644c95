"""Presets for the gridworld: TOML files, which `rlcore init` fills in."""
