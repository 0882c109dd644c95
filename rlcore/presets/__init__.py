"""Presets: complete configs that plugins bring, each for an algorithm and a kind of environment."""
