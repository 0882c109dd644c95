"""Giving every component its state back, or saying why it does not fit."""
