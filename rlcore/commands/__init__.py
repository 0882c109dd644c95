"""The commands of the command line, one per file, each with a function `run(options)` that returns the exit code."""
