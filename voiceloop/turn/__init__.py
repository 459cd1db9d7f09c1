"""What runs for one turn: its recogniser, its reply, its place in the history."""
