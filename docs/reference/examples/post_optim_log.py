import torch

from rlcore import hookimpl


class SizeOfWeights:
    """Logs the norm of all weights as train/weight_norm."""

    @hookimpl
    def post_optim_log(self, learner):
        norms = torch._foreach_norm([parameter.detach() for parameter in learner.model.parameters()])
        return {"weight_norm": torch.stack(norms).norm()}
