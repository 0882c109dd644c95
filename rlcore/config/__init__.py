"""From TOML to validated sections."""
