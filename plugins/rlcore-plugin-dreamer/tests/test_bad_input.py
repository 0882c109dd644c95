"""What cannot be right is refused before the first frame, with what to do."""

import pytest
from rlcore_plugin_testing.small_run import make_run

from rlcore.errors import ConfigError

from .sections import AROUND, MODEL, PIXELS, around


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        (around(buffer={"burn_in": 2}), r"burn_in = 2: the loss dreamer goes on from the states.*set burn_in = 0"),
        (around(buffer={"n_steps": 3}), r"n_steps = 3: the loss dreamer.*set n_steps = 1"),
        (around(buffer={"alpha": 0.5}), "td_error"),
        (around(model={"blocks": 3}), "deter = 16 must be a multiple of blocks = 3"),
        (around(model={"std_min": 2.0}), "std_max = 1.0 must not be below std_min = 2.0"),
        ({**AROUND, "env": {"use": "testing:toy", "actions": "unbounded"}}, "Discrete.*finite bounds"),
        ({**AROUND, "env": {"use": "testing:toy-dict", "actions": "discrete"}}, "vector or an image"),
        ({**PIXELS, "env": {**PIXELS["env"], "size": 5}}, "5 x 5 cannot be halved"),
        (
            {**PIXELS, "model": {**MODEL, "depth": 3, "blocks": 4}},
            "6 channels, depth = 3, which must be a multiple of blocks = 4",
        ),
        ({**AROUND, "buffer": {"use": "replay", "warmup_frames": 16}}, "replay:sequences"),
        ({**AROUND, "model": {"use": "recurrent:gru"}}, "requires the model parts encoder, rssm"),
        ({**AROUND, "buffer": []}, "which nothing here writes"),
    ],
)
def test_what_does_not_fit_is_refused(sections, message):
    with pytest.raises(ConfigError, match=message):
        make_run(sections=sections)
