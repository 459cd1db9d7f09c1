"""Commands of the terminal that belong to no other package: their arguments and their output."""
