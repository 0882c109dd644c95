"""What the model imagines of an episode, and `rlcore watch --imagined`, which puts it beside what was real."""

import pytest
import torch
from rlcore_plugin_dreamer.imagination import follow, imagine, predict
from rlcore_plugin_testing.contracts.data import observations
from rlcore_plugin_testing.small_run import make_run

from .sections import AROUND, PIXELS
from .test_policy import built


def test_states_are_inferred_where_an_observation_is_shown_and_predicted_elsewhere():
    model, spec = built(AROUND)
    rssm, actions, steps = model.rssm, model.actions, 4
    generator = torch.Generator().manual_seed(0)
    seen = observations(spec, 1 + steps)
    uniform = torch.rand(1 + steps, rssm.latents, generator=generator)
    noise = actions.noise((steps, 1), generator)
    with torch.no_grad():
        tokens = model.encoder(seen)
        none = torch.zeros(1 + steps, actions.inputs)
        shown = torch.arange(1 + steps) < 1
        first = follow(rssm, tokens[:1], none[:1], shown[:1], uniform[:1])
        imagined = imagine(model, first, uniform[1:].unsqueeze(1), noise)
        led = torch.cat([none[:1], imagined.action[:, 0]])
        alone = follow(rssm, tokens, led, shown, uniform)
        inferred = follow(rssm, tokens, led, torch.ones_like(shown), uniform)
        begins = shown.view(-1, 1, 1)
        expected = predict(model, alone.features())
        observed = rssm.observe(tokens[:, None], led[:, None], begins, rssm.initial(1), uniform[:, None]).latent
    for name in ("going", "critic", "actor"):
        torch.testing.assert_close(getattr(expected, name), getattr(imagined.predicted, name)[:, 0])
    assert expected.going.std() > 1e-4, "it tells states from each other"
    torch.testing.assert_close(inferred.features(), observed.features()[:, 0])
    assert not torch.equal(alone.features(), inferred.features())


@pytest.mark.parametrize("sections", [AROUND, PIXELS])
def test_watch_writes_what_was_imagined_beside_what_was_real(sections, cli, workdir):
    video = pytest.importorskip("rlcore_plugin_video.mp4")
    pytest.importorskip("matplotlib")
    make_run(folder=workdir, sections={**sections, "checkpoint": {"use": "torch", "every": 64}}).trainer.train()
    outcome = cli("watch", "toy", "--imagined", "2", "--video", "imagined.mp4", "--trust")
    assert outcome.code == 0, outcome.err
    length = int(outcome.out.split("length")[1].split()[0])
    frames, _ = video.read_mp4("imagined.mp4")
    assert len(frames) == length > 5
    if sections is PIXELS:
        height, width = frames.shape[-2:]
        assert width == 2 * height > 512
        left, right = frames.float().mean(0)[:, 4:-4].chunk(2, -1)
        assert (left - right).abs().max() > 5  # of an untrained decoder
        assert frames[0, 1, 2, -20] > 100 > frames[5, 1, 2, -20]  # green while the model sees, then red
    assert "say where it goes with --video" in cli("watch", "toy", "--imagined").err


def test_watch_refuses_models_that_imagine_nothing(cli, workdir):
    sections = {"checkpoint": {"use": "torch", "every": 32}}
    make_run(folder=workdir, sections=sections).trainer.train()
    outcome = cli("watch", "toy", "--imagined", "--video", "imagined.mp4", "--trust")
    assert outcome.code == 2
    assert "has no method imagine" in outcome.err
    both = cli("watch", "toy", "--imagined", "--video", "imagined.mp4", "--agent", "policy.pt2")
    assert "--agent plays a file: leave one out" in both.err
    assert not (workdir / "imagined.mp4").exists()
