"""Training a draft for a target: what it is asked, what it says, and a layer that guesses it."""
