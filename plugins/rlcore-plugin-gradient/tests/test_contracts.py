"""The contracts of the plugin, its learner, its optimizers and its schedules."""

from rlcore_plugin_testing.contracts import LearnerContract, OptimizerContract, PluginContract, SchedulerContract


class TestPlugin(PluginContract):
    plugin = "gradient"


class TestGradientLearner(LearnerContract):
    use = "gradient"


class TestClippingGradientLearner(LearnerContract):
    use = "gradient"
    config = {"max_grad_norm": 0.5}


class TestAdam(OptimizerContract):
    use = "adam"
    config = {"lr": 1e-2}


class TestAdamW(OptimizerContract):
    use = "adamw"
    config = {"lr": 1e-2, "weight_decay": 0.01}


class TestSGD(OptimizerContract):
    use = "sgd"
    config = {"lr": 1e-2, "momentum": 0.9}


for _name in ("Adadelta", "Adafactor", "Adagrad", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop"):
    globals()[f"Test{_name}"] = type(
        f"Test{_name}", (OptimizerContract,), {"use": _name.lower(), "__module__": __name__}
    )


class TestLinear(SchedulerContract):
    use = "linear"


class TestCosine(SchedulerContract):
    use = "cosine"
