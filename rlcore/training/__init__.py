"""The loop, and what it saves and evaluates."""
