"""The loop points: their declarations, the hooks that implement them, their calls, and `register_op`."""
