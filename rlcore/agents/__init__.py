"""Trained policies outside of training: an agent acts on what an env gives, with its transforms inside."""

from __future__ import annotations
