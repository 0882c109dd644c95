import torch

from rlcore import hookimpl


class ClipEachGradient:
    """Clips every gradient by value instead of the norm of all."""

    @hookimpl
    def optimizer(self, losses, learner):
        (optimizer,) = learner.optimizers.values()
        optimizer.zero_grad()
        sum(value for name, value in losses.items() if name.startswith("loss_")).backward()
        torch.nn.utils.clip_grad_value_(learner.model.parameters(), 0.1)
        optimizer.step()
        return {name: value.detach() for name, value in losses.items()}
