"""The commands `rlcore plot`, `compare`, `report` and `runs`: their arguments, and what they do."""
