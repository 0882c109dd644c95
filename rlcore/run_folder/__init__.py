"""The folder of a run: its files, its status, and whose it is."""
