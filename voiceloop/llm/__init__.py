"""The language model: a target that decides, a draft that proposes, and conversations over both."""
