"""The short way in from Python: a preset, an environment and keys, trained in one line."""
