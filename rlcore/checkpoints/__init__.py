"""The state of a run on disk: committed, verified, kept, converted."""
