"""One update: the gradient step, the optimizers that take it, their schedules, and target networks."""
