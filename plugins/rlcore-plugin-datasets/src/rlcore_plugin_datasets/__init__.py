"""Datasets for rlcore: episodes in files of Minari's format, recorded, checked, merged; and a buffer of them."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    return [
        Component(
            "buffer", "dataset", f"{__name__}.buffer:DatasetBuffer", summary="the transitions of recorded episodes"
        ),
        Component(
            "buffer", "mixed", f"{__name__}.mixed:MixedBuffer", summary="a share of a dataset beside fresh transitions"
        ),
        Component(
            "buffer",
            "dataset-sequences",
            f"{__name__}.sequences:DatasetSequences",
            summary="stretches of recorded episodes, for a policy with a state",
        ),
        Component("hook", "record", f"{__name__}.hook:RecordHook", summary="the episodes of a run, while it trains"),
    ]
