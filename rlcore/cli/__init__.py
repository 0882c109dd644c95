"""The command line: the commands, one per file, each with a function `run(options)` that returns the exit code."""
