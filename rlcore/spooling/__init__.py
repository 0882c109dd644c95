"""Loggers that talk to a server: what is logged goes to a spool on disk, and a sender takes it on."""
