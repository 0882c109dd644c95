from rlcore import hookimpl


class CountParameters:
    """Prints the size of the model."""

    @hookimpl
    def setup(self, trainer):
        print(sum(parameter.numel() for parameter in trainer.model.parameters()), "parameters")
