"""The command line: one module a command, each with its arguments and its output."""
