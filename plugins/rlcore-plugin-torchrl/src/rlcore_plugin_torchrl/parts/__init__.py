"""Parts of TorchRL that a config names: envs, networks, losses, estimators and replay buffers."""
