"""The losses, beside the same equations written once more in NumPy: `plain_dreamer.py`."""

import numpy as np
import pytest
import torch
from rlcore_plugin_dreamer import bins as binned
from rlcore_plugin_dreamer import categorical, returns
from rlcore_plugin_dreamer.laprop import LaProp
from rlcore_plugin_mlp import symlog
from rlcore_plugin_testing.small_run import make_run

from rlcore.types import FIRST, MASK, POLICY_STATE

from . import plain_dreamer as plain
from .sections import AROUND, MODEL, NUMBERS

LOSSES = ("loss_world", "loss_actor", "loss_critic", "loss_replayed_values")


@pytest.fixture
def random():
    return np.random.default_rng(0)


def prepared(sections):
    """Return a trainer that has filled its buffer, with weights of which none is 0."""
    trainer = make_run(sections=sections).trainer
    trainer.train()
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in trainer.model.parameters():
            parameter += 0.2 * torch.randn(parameter.shape, generator=generator)
        for head in (trainer.model.reward, trainer.model.critic, trainer.model.target_critic):
            head.out.bias -= 0.02 * (torch.arange(255) - 127).square()  # of moderate numbers
    trainer.buffer._generator.manual_seed(0)
    return trainer


def compared(sections, space, dtype):
    """Return the losses, their terms and bounds by the plugin and by the second writing."""
    trainer = prepared(sections)
    model, loss = trainer.model, trainer.learner._loss
    rows = trainer.buffer._draw(8)
    minibatch = {key: rows[key] for key in (*loss.reads,)}
    noise = loss.sample_noise(minibatch[MASK].numel(), torch.Generator().manual_seed(1))
    model.to(dtype)
    with torch.no_grad():
        model.return_bounds.bounds.copy_(torch.tensor([-0.5, 2.0]))
    converted = {k: v.to(dtype) if v.is_floating_point() else v for k, v in {**minibatch, **noise}.items()}
    found = {name: value.detach().double().item() for name, value in loss(converted).items()}
    weights = {name: value.double().numpy() for name, value in model.state_dict().items()}
    networks = plain.Plain(weights, MODEL, space)
    expected, terms, bounds = plain.losses(networks, *in_words(model, minibatch, noise), [-0.5, 2.0])
    return found, expected, terms, model.latest_bounds.bounds.numpy(), bounds


def in_words(model, minibatch, noise):
    """Return a minibatch and its noise as `plain.losses` takes them."""
    trained = minibatch[MASK].squeeze(-1)
    steps, count = trained.shape
    begin, last = model.carried.unpacked(minibatch[POLICY_STATE])
    encoded = model.actions.from_env(minibatch["action"])
    posterior = noise["posterior_noise"].view(steps, count, -1)
    prior = noise["prior_noise"].unflatten(1, (steps, count))
    actions = noise["action_noise"].unflatten(1, (steps, count))
    sequences, noises = [], []
    for row in range(count):
        length = int(trained[:, row].sum())
        sequences.append(
            {
                "begin": [part[row].double().numpy() for part in (*begin, last)],
                "first": bool(minibatch[FIRST][0, row]),
                "observations": minibatch["observation"][: length + 1, row].double().numpy(),
                "actions": encoded[:length, row].double().numpy(),
                "rewards": minibatch["next", "reward"][:length, row, 0].double().tolist(),
                "ends": minibatch["next", "terminated"][:length, row, 0].tolist(),
            }
        )
        noises.append(
            [
                {
                    "posterior": posterior[time, row].double().numpy(),
                    "prior": prior[:, time, row].double().numpy(),
                    "action": actions[:, time, row].double().numpy(),
                }
                for time in range(length + 1)
            ]
        )
    return sequences, noises


@pytest.mark.parametrize(("sections", "space"), [(AROUND, "numbered"), (NUMBERS, "numbers")])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-6), (torch.float32, 1e-5)])
def test_each_loss_is_that_of_the_equations(sections, space, dtype, tolerance):
    found, expected, terms, bounds, expected_bounds = compared(sections, space, dtype)
    for name in LOSSES:
        assert found[name] == pytest.approx(expected[name], rel=tolerance), name
    for name, value in terms.items():
        assert found[f"world/{name}"] == pytest.approx(value, rel=tolerance), name
    assert bounds == pytest.approx(expected_bounds, rel=1e-5)


def test_the_sequences_of_that_test_have_all_that_there_is():
    """Beginnings and middles of episodes, ends of both kinds, and padding."""
    rows = prepared(AROUND).buffer._draw(8)
    trained = rows[MASK].squeeze(-1)
    begins = rows[FIRST][0]
    assert begins.any()
    assert not begins.all()
    assert not trained[:-1].all()
    for end in ("terminated", "truncated"):
        assert (rows["next", end] & rows[MASK]).any()


def test_bins_are_symexp_of_a_grid_and_symmetric():
    bins = binned.symexp_bins(binned.BINS)
    assert bins.numpy() == pytest.approx(plain.bins(), rel=1e-5)
    assert torch.equal(bins, -bins.flip(0))
    assert bins[127] == 0


def test_a_uniform_distribution_has_a_mean_of_exactly_0():
    assert (binned.expectation(torch.zeros(3, binned.BINS), binned.symexp_bins(binned.BINS)) == 0).all()


def test_symexp_is_the_inverse_of_symlog(random):
    values = torch.tensor(random.normal(size=50) * 10.0 ** random.integers(-3, 5, 50))
    torch.testing.assert_close(symlog.symexp(symlog.symlog(values)), values)
    assert symlog.symlog(values).numpy() == pytest.approx(plain.symlog(values.numpy()))


@pytest.mark.parametrize("target", [0.0, -0.3, 1e3, -1e9, 1e9, "a bin", "last"])
def test_two_hot_losses_weigh_the_two_bins_around(target, random):
    grid = binned.symexp_bins(binned.BINS).double()
    target = {"a bin": float(grid[40]), "last": float(grid[-1])}.get(target, target)
    logits = torch.tensor(random.normal(size=binned.BINS))
    found = binned.two_hot_loss(logits.log_softmax(-1), torch.tensor([target], dtype=torch.float64), grid)
    assert found.item() == pytest.approx(plain.two_hot_loss(logits.numpy(), target, grid.numpy()))


def test_a_trained_two_hot_distribution_predicts_its_target():
    bins = binned.symexp_bins(binned.BINS)
    logits = torch.tensor(plain.two_hot(123.4, bins.double().numpy())).log()
    assert binned.expectation(logits, bins.double()).item() == pytest.approx(123.4)


def test_unimix_and_divergence_are_those_of_the_equations(random):
    logits, others = random.normal(size=(2, 5, 4)) * 3
    p, q = ([plain.unimix(row) for row in rows] for rows in (logits, others))
    mixed = [categorical.mixed(torch.tensor(rows), 0.01) for rows in (logits, others)]
    assert mixed[0].exp().numpy() == pytest.approx(np.array(p))
    assert categorical.divergence(*mixed).item() == pytest.approx(plain.kl(p, q))
    expected = [-(row * np.log(row)).sum() for row in p]
    assert categorical.entropy(mixed[0]).numpy() == pytest.approx(np.array(expected))


def test_samples_have_the_probabilities():
    probs = torch.tensor([0.1, 0.0, 0.6, 0.3])
    uniform = torch.linspace(0, 1, 100_001)[:-1]
    counts = torch.bincount(categorical.sample(probs.expand(100_000, 4), uniform), minlength=4)
    torch.testing.assert_close(counts / 100_000, probs, atol=1e-4, rtol=0)


def test_a_sample_has_the_gradient_of_its_probabilities():
    logits = torch.tensor([0.3, -1.0, 2.0], requires_grad=True)
    weights = torch.tensor([1.0, 2.0, 3.0])
    hot = categorical.straight_through(torch.tensor(1), logits.softmax(-1))
    assert hot.tolist() == [0.0, 1.0, 0.0]
    (through,) = torch.autograd.grad((hot * weights).sum(), logits)
    (expected,) = torch.autograd.grad((logits.softmax(-1) * weights).sum(), logits)
    assert torch.equal(through, expected)


def test_lambda_returns_are_those_of_the_recursion(random):
    reward, discount, value, mix = (torch.tensor(random.uniform(size=(6, 1))) for _ in range(4))
    found = returns.lambda_returns(reward, discount, value, mix).squeeze(-1)
    lists = [entry.squeeze(-1).tolist() for entry in (reward, discount, value, mix)]
    assert found.numpy() == pytest.approx(plain.lambda_return(*lists))


def test_bounds_move_to_the_percentiles_of_what_counts(random):
    values, counts = torch.tensor(random.normal(size=(3, 40))).float(), torch.tensor(random.uniform(size=(3, 40)) < 0.5)
    bounds = returns.ReturnBounds()
    bounds.bounds.copy_(torch.tensor([-1.0, 4.0]))
    expected = 0.9 * np.array([-1.0, 4.0]) + 0.1 * np.percentile(values[counts].numpy(), [5, 95])
    assert bounds.moved(values, counts, 0.1).numpy() == pytest.approx(expected, rel=1e-5)
    assert torch.equal(bounds.moved(values, torch.zeros_like(counts), 0.1), bounds.bounds)


def laprop(parameters, gradients, lr, warmup):
    """Return parameters after steps: clip by norms, divide by the root of the second moment, average, move."""
    momentum = scale = 0.0
    for number, gradient in enumerate(gradients):
        longest = 0.3 * max(1e-3, np.sqrt((parameters**2).sum()))
        gradient = gradient / max(1.0, np.sqrt((gradient**2).sum()) / longest)
        scale = 0.999 * scale + 0.001 * gradient**2
        normalised = gradient / (np.sqrt(scale / (1 - 0.999 ** (number + 1))) + 1e-20)
        momentum = 0.9 * momentum + 0.1 * normalised
        parameters = parameters - lr * min(1, number / warmup) * momentum / (1 - 0.9 ** (number + 1))
    return parameters


@pytest.mark.parametrize("size", [1e-6, 1.0, 100.0])
def test_steps_of_laprop_are_those_of_its_equations(size, random):
    class Context:
        name = "laprop"
        model = torch.nn.Linear(3, 4, bias=False).double()

    start, gradients = random.normal(size=(4, 3)), random.normal(size=(6, 4, 3)) * size
    optimizer = LaProp(LaProp.Config(lr=0.01, warmup=3), Context)
    with torch.no_grad():
        Context.model.weight.copy_(torch.tensor(start))
    for gradient in gradients:
        Context.model.weight.grad = torch.tensor(gradient)
        optimizer.step()
    assert Context.model.weight.detach().numpy() == pytest.approx(laprop(start, gradients, 0.01, 3), rel=1e-9)


def test_no_gradient_of_imagined_steps_reaches_the_world_model():
    """That of actor and critic ends at the states; that of the replayed values goes on."""
    trainer = prepared(AROUND)
    loss, model = trainer.learner._loss, trainer.model
    entries = {**{key: trainer.buffer._draw(8)[key] for key in loss.reads}}
    noise = loss.sample_noise(entries[MASK].numel(), torch.Generator().manual_seed(1))
    found = loss({**entries, **noise})
    reached = {}
    for name in LOSSES:
        trained = {key: value for key, value in model.named_parameters() if value.requires_grad}
        gradients = torch.autograd.grad(found[name], list(trained.values()), retain_graph=True, allow_unused=True)
        reached[name] = {key.split(".")[0] for key, value in zip(trained, gradients, strict=True) if value is not None}
    assert reached == {
        "loss_world": {"encoder", "rssm", "decoder", "reward", "continuation"},
        "loss_actor": {"actor"},
        "loss_critic": {"critic"},
        "loss_replayed_values": {"encoder", "rssm", "critic"},
    }
