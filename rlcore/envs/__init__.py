"""Vector envs as a policy sees them: transformed, joined, checked, stepped for a look, played for an evaluation."""
