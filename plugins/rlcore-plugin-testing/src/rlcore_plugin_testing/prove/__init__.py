"""Proofs of reliability on this machine, with a user's config, plugins and environment: `rlcore prove`."""
