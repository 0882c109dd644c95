from rlcore import hookimpl


class StandardiseAdvantages:
    """Gives the advantages of each minibatch mean 0 and standard deviation 1."""

    @hookimpl
    def process_optim_batch(self, minibatch):
        advantage = minibatch["advantage"]
        minibatch["advantage"] = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        return minibatch
