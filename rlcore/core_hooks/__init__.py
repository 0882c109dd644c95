"""The hooks that rlcore itself brings, one per file, and the base of hook objects that register themselves."""
