"""Recognition of speech: voice activity, turns of the user, recognisers, and words that stay."""
