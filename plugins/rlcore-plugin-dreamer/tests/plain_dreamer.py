"""DreamerV3's equations once more, in NumPy: one row, one step and one latent after the other, in float64."""

import numpy as np


def symlog(x):
    return np.sign(x) * np.log(1 + np.abs(x))


def symexp(x):
    return np.sign(x) * (np.exp(np.abs(x)) - 1)


def bins(count=255):
    return symexp(np.linspace(-20, 20, count))


def softmax(logits):
    powers = np.exp(logits - logits.max())
    return powers / powers.sum()


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def two_hot(target, grid):
    """Return the weights of the two bins around a number."""
    weights = np.zeros(len(grid))
    if target <= grid[0]:
        weights[0] = 1
    elif target >= grid[-1]:
        weights[-1] = 1
    else:
        upper = next(i for i, value in enumerate(grid) if value > target)
        weights[upper] = (target - grid[upper - 1]) / (grid[upper] - grid[upper - 1])
        weights[upper - 1] = 1 - weights[upper]
    return weights


def two_hot_loss(logits, target, grid):
    return -(two_hot(target, grid) * np.log(softmax(logits))).sum()


def unimix(logits, share=0.01):
    return (1 - share) * softmax(logits) + share / len(logits)


def kl(p, q):
    """Return the divergence of latents `[latent, class]`."""
    return sum((a * (np.log(a) - np.log(b))).sum() for a, b in zip(p, q, strict=True))


def drawn(probs, uniform):
    """Return the class at which the cumulative probability passes a uniform number."""
    total = 0.0
    for index, probability in enumerate(probs):
        total += probability
        if uniform < total:
            return index
    return len(probs) - 1


def rms_norm(x, scale, eps=1e-4):
    return x / np.sqrt((x**2).mean() + eps) * scale


def silu(x):
    return x * sigmoid(x)


def lambda_return(rewards, discounts, values, lam):
    """Return R_t for each step; the last value ends the last return."""
    following, found = values[-1], []
    for reward, discount, value, mix in reversed(list(zip(rewards, discounts, values, lam, strict=True))):
        following = reward + discount * ((1 - mix) * value + mix * following)
        found.insert(0, following)
    return found


class Plain:
    """The networks of a model, by its weights.

    Args:
        weights: arrays by name, float64.
        widths: `latents`, `classes`, `blocks`.
        space: "numbered" or "numbers".
    """

    def __init__(self, weights, widths, space, unimix=0.01):
        self.weights, self.widths, self.space, self.unimix = weights, widths, space, unimix
        self.deter = weights["rssm.mix_norm.weight"].size
        self.grid = bins()

    def linear(self, name, x):
        return self.weights[f"{name}.weight"] @ x + self.weights[f"{name}.bias"]

    def layer(self, name, x):
        return silu(rms_norm(self.linear(f"{name}.linear", x), self.weights[f"{name}.norm.weight"]))

    def head(self, name, x):
        index = 0
        while f"{name}.hidden.{index}.linear.weight" in self.weights:
            x = self.layer(f"{name}.hidden.{index}", x)
            index += 1
        return self.linear(f"{name}.out", x)

    def blocks(self, name, columns):
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        return [column @ w + b[0] for column, w, b in zip(columns, weight, bias, strict=True)]

    def encoded(self, observation):
        x = symlog(observation)
        for index in range(3):
            x = self.layer(f"encoder.hidden.{index}", x)
        return x

    def next_deter(self, deter, stoch, action):
        action = action / np.maximum(1, np.abs(action))
        seen = [
            self.layer("rssm.of_deter", deter),
            self.layer("rssm.of_stoch", stoch),
            self.layer("rssm.of_action", action),
        ]
        own = np.split(deter, self.widths["blocks"])
        hidden = np.concatenate(self.blocks("rssm.mix", [np.concatenate([part, *seen]) for part in own]))
        hidden = silu(rms_norm(hidden, self.weights["rssm.mix_norm.weight"]))
        following = []
        for part, gates in zip(own, self.blocks("rssm.gates", np.split(hidden, self.widths["blocks"])), strict=True):
            reset, new, update = np.split(gates, 3)
            update = sigmoid(update - 1)
            following.append(update * np.tanh(sigmoid(reset) * new) + (1 - update) * part)
        return np.concatenate(following)

    def distribution(self, logits):
        return [unimix(row, self.unimix) for row in logits.reshape(self.widths["latents"], -1)]

    def prior(self, deter):
        x = deter
        for index in range(2):
            x = self.layer(f"rssm.prior_hidden.{index}", x)
        return self.distribution(self.linear("rssm.prior_logits", x))

    def posterior(self, deter, tokens):
        x = self.layer("rssm.posterior_hidden", np.concatenate([deter, tokens]))
        return self.distribution(self.linear("rssm.posterior_logits", x))

    def latent(self, probs, uniforms):
        hot = [np.eye(len(p))[drawn(p, u)] for p, u in zip(probs, uniforms, strict=True)]
        return np.concatenate(hot)

    def predicted(self, name, features):
        """Return the expectation over the bins."""
        return (softmax(self.head(name, features)) * self.grid).sum()

    def action(self, features, noise):
        """Return an encoded action."""
        outputs = self.head("actor", features)
        if self.space == "numbered":
            return np.eye(len(outputs))[drawn(unimix(outputs), noise[0])]
        mean, deviation = self.normal(outputs)
        return mean + deviation * noise

    @staticmethod
    def normal(outputs):
        mean, deviation = np.split(outputs, 2)
        return np.tanh(mean), 0.9 * sigmoid(deviation + 2) + 0.1

    def log_prob_and_entropy(self, features, action):
        outputs = self.head("actor", features)
        if self.space == "numbered":
            probs = unimix(outputs)
            return np.log(probs[action.argmax()]), -(probs * np.log(probs)).sum()
        mean, deviation = self.normal(outputs)
        densities = np.exp(-0.5 * ((action - mean) / deviation) ** 2) / (deviation * np.sqrt(2 * np.pi))
        return np.log(densities).sum(), (0.5 * np.log(2 * np.pi * np.e * deviation**2)).sum()

    def imagined(self, deter, stoch, uniforms, noises):
        """Return features and actions of a rollout."""
        features, actions = [np.concatenate([deter, stoch])], []
        for uniform, noise in zip(uniforms, noises, strict=True):
            actions.append(self.action(features[-1], noise))
            deter = self.next_deter(deter, stoch, actions[-1])
            stoch = self.latent(self.prior(deter), uniform)
            features.append(np.concatenate([deter, stoch]))
        return features, actions


def losses(plain, sequences, noise, bounds, discount=1 - 1 / 333, lam=0.95):
    """Return the losses of sequences, and the new bounds of returns.

    Args:
        plain: the networks.
        sequences: dicts with `begin` (deter, stoch, encoded action), `first`, `observations`, one more than `actions`
            (encoded), `rewards` and `ends`.
        noise: of each sequence and observation: `posterior`, `prior` `[step][latent]`, `action` `[step]`.
        bounds: percentiles so far.
    """
    world = {name: [] for name in ("observation", "reward", "continuation", "dynamics", "representation")}
    rollouts, values_at = [], []
    for number, sequence in enumerate(sequences):
        deter, stoch, action = sequence["begin"]
        states = []
        for time, observation in enumerate(sequence["observations"]):
            if time:
                action = sequence["actions"][time - 1]
            elif sequence["first"]:
                deter, stoch, action = 0 * deter, 0 * stoch, 0 * action
            deter = plain.next_deter(deter, stoch, action)
            posterior, prior = plain.posterior(deter, plain.encoded(observation)), plain.prior(deter)
            stoch = plain.latent(posterior, noise[number][time]["posterior"])
            features = np.concatenate([deter, stoch])
            states.append(features)
            world["dynamics"].append(max(1, kl(posterior, prior)))
            world["representation"].append(max(1, kl(posterior, prior)))
            error = plain.head("decoder.head", features) - symlog(observation)
            world["observation"].append((error**2).sum())
            goes_on = sigmoid(plain.head("continuation", features)[0])
            target = 0 if time and sequence["ends"][time - 1] else discount
            world["continuation"].append(-target * np.log(goes_on) - (1 - target) * np.log(1 - goes_on))
            if time or sequence["first"]:
                reward = sequence["rewards"][time - 1] if time else 0.0
                world["reward"].append(two_hot_loss(plain.head("reward", features), reward, plain.grid))
            its_noise = noise[number][time]
            rollouts.append((number, time, plain.imagined(deter, stoch, its_noise["prior"], its_noise["action"])))
        values_at.append(states)
    scored = [(number, time, *scores(plain, *rollout, lam)) for number, time, rollout in rollouts]
    all_returns = np.concatenate([found["returns"] for *_, found in scored])
    bounds = 0.99 * np.asarray(bounds) + 0.01 * np.percentile(all_returns, [5, 95])
    scale = max(1.0, bounds[1] - bounds[0])
    actor, critic = [], []
    for *_, found in scored:
        advantage = (found["returns"] - found["values"]) / scale
        actor.append((-found["weights"] * (found["log_probs"] * advantage + 3e-4 * found["entropies"])).mean())
        critic.append((found["weights"] * found["critic"]).mean())
    return (
        {
            "loss_world": sum({"representation": 0.1}.get(k, 1.0) * np.mean(v) for k, v in world.items()),
            "loss_actor": np.mean(actor),
            "loss_critic": np.mean(critic),
            "loss_replayed_values": 0.3 * replayed(plain, sequences, values_at, scored, discount, lam),
        },
        {name: np.mean(value) for name, value in world.items()},
        bounds,
    )


def scores(plain, features, actions, lam):
    """Return what becomes of a rollout."""
    going = [sigmoid(plain.head("continuation", x)[0]) for x in features]
    rewards = [plain.predicted("reward", x) for x in features[1:]]
    values = [plain.predicted("critic", x) for x in features]
    returns = np.array(lambda_return(rewards, going[1:], values[1:], [lam] * len(rewards)))
    pairs = [plain.log_prob_and_entropy(x, a) for x, a in zip(features[:-1], actions, strict=False)]
    critic = [towards(plain, x, target) for x, target in zip(features[:-1], returns, strict=True)]
    found = {
        "returns": returns,
        "values": np.array(values[:-1]),
        "weights": np.cumprod(going)[:-1],
        "log_probs": np.array([pair[0] for pair in pairs]),
        "entropies": np.array([pair[1] for pair in pairs]),
        "critic": np.array(critic),
    }
    return (found,)


def towards(plain, features, target):
    """Return the loss of a value towards a return and towards the slow critic."""
    logits = plain.head("critic", features)
    slow = plain.predicted("target_critic", features)
    return two_hot_loss(logits, target, plain.grid) + two_hot_loss(logits, slow, plain.grid)


def replayed(plain, sequences, states, scored, discount, lam):
    """Return the loss of the critic on replayed steps."""
    first_returns = {(number, time): found["returns"][0] for number, time, found in scored}
    terms = []
    for number, sequence in enumerate(sequences):
        steps = len(sequence["rewards"])
        discounts = [0.0 if ends else discount for ends in sequence["ends"]]
        values = [first_returns[number, time + 1] for time in range(steps)]
        targets = lambda_return(sequence["rewards"], discounts, values, [lam] * (steps - 1) + [0.0])
        terms += [towards(plain, states[number][time], target) for time, target in enumerate(targets)]
    return np.mean(terms)
