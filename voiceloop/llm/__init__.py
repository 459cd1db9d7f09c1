"""The language model: a target that decides, a draft that guesses, and conversations over both."""
