"""What hook objects have in checkpoints."""

import torch

import rlcore
from rlcore import OptimizerHook


def test_every_hook_can_be_saved_under_its_own_name(batch, make_trainer, tmp_path):
    trainer = make_trainer([batch(4)], save_trainer_file=tmp_path / "run")
    optimizer = torch.optim.Adam(trainer.loss_module.parameters())
    hooks = [
        rlcore.ClearCudaCache(1),
        rlcore.CountFramesLog(1),
        rlcore.LogScalar(),
        rlcore.LogTiming(),
        rlcore.RewardNormalizer(),
        rlcore.BatchSubSampler(2),
        OptimizerHook(optimizer),
        rlcore.LRSchedulerHook(torch.optim.lr_scheduler.MultiStepLR(optimizer, [1, 1, 3])),
        rlcore.UpdateWeights(sender=type("Sender", (), {"update_weights": lambda self: None})()),
        rlcore.EarlyStopping(),
    ]
    for hook in hooks:
        hook.register(trainer)
    trainer.train()
    saved = trainer.state_dict()
    trainer.save_trainer(True)
    resumed = make_trainer([batch(4)], save_trainer_file=tmp_path / "other")
    for hook in hooks:
        hook.register(resumed)
    resumed.load_from_file(tmp_path / "run")
    assert {"log_('next', 'reward')", "clear_cuda_cache", "lr_scheduler"} < set(saved)
    assert repr(resumed.state_dict()["reward_normalizer"]) == repr(saved["reward_normalizer"])
