"""Several policies in one run: each has its envs, its loss, its optimizers and its minibatches."""
