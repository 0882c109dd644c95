"""From envs to batches."""
