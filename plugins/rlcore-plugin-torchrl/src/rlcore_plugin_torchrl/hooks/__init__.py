"""Hook objects as TorchRL's trainer has them, one per file; some are the hooks of configs too."""
