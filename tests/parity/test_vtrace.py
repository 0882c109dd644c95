"""V-trace equals TorchRL's on batches with ends of both kinds."""

import torch
from rlcore_plugin_testing.contracts import EstimatorContract
from torchrl.objectives.value.functional import vtrace_advantage_estimate

VTRACE = EstimatorContract.of("vtrace")


def test_value_targets_and_advantages():
    context = VTRACE.bench()
    batch = VTRACE.batch(context, {(0, 3): "terminated", (1, 5): "truncated", (2, 11): "terminated"})
    model = context.model
    with torch.no_grad():
        log_prob = model.actor.distribution.log_prob(model.actor(batch["observation"]), batch["action"])
        batch.set("sample_log_prob", log_prob + torch.randn(3, 12, 1, generator=torch.Generator().manual_seed(1)))
        value, next_value = model.critic(batch["observation"]), model.critic(batch["next", "observation"])
        # inside an episode the next observation is the following one: made-up batches need not be so
        inside = ~batch["next", "done"][:, :-1]
        next_value[:, :-1] = torch.where(inside, value[:, 1:], next_value[:, :-1])
    VTRACE.make(context, gamma=0.9, rho_clip=1.5, c_clip=0.8)(batch)
    ends = (batch["next", "reward"], batch["next", "done"], batch["next", "terminated"])
    advantage, target = vtrace_advantage_estimate(
        0.9, log_prob, batch["sample_log_prob"], value, next_value, *ends, rho_thresh=1.5, c_thresh=0.8
    )
    torch.testing.assert_close(batch["value_target"], target)
    torch.testing.assert_close(batch["advantage"], advantage)
