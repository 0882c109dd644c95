"""From a config to a ready trainer in its folder, and how a run ends."""
