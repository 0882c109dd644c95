"""Actor-critic learning off-policy: SAC, also for discrete actions, and CrossQ, over critics in one batched network."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    return [
        Component(
            "model", "actor-critic", f"{__name__}.model:ActorCriticModel", summary="an actor, N critics, their targets"
        ),
        Component(
            "model",
            "recurrent-actor-critic",
            f"{__name__}.recurrent:RecurrentActorCriticModel",
            summary="the same with a memory each, LSTM or GRU",
        ),
        Component("loss", "sac", f"{__name__}.sac:SACLoss", summary="soft actor-critic; REDQ and DroQ are settings"),
        Component(
            "model", "crossq", f"{__name__}.crossq_model:CrossQModel", summary="an actor and critics, renormalised"
        ),
        Component("loss", "crossq", f"{__name__}.crossq:CrossQLoss", summary="SAC without target networks"),
        Component(
            "model",
            "discrete-actor-critic",
            f"{__name__}.discrete_model:DiscreteActorCriticModel",
            summary="an actor and N critics of discrete actions, their targets",
        ),
        Component(
            "loss", "discrete-sac", f"{__name__}.discrete_sac:DiscreteSACLoss", summary="SAC of discrete actions"
        ),
        Component("loss", "td3", f"{__name__}.td3:TD3Loss", summary="twin delayed deterministic policy gradient"),
        Component("loss", "ddpg", f"{__name__}.td3:DDPGLoss", summary="deep deterministic policy gradient"),
    ]
