"""Builders for scripts, lent to `rlcore.helpers`; they import plugins when they are called."""
