"""One config trained with several seeds, each in a process of its own: which, started, watched, stopped, shown."""
