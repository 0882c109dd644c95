"""The state of a run in memory: taken, hashed, kept, and what its bits depend on."""
