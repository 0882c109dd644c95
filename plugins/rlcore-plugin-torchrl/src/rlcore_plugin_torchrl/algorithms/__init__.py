"""Trainers of named algorithms, lent to `rlcore.algorithms`.

Each is `rlcore.Trainer` with hooks registered; what they are is in `recipes.py`. TorchRL is not imported, unless a part
of it has to be made.
"""
