"""What stands around the process of a run: signals, streams, forks, a companion, and a watch over what hangs."""
