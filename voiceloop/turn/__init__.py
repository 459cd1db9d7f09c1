"""The work for one turn: its recogniser, its reply, and its place in the history."""
