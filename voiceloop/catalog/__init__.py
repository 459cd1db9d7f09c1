"""Models by one word: what there is, where it lies, and how it gets there."""
