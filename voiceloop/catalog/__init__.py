"""Models by name: which models are known, where they are stored, and how they are fetched."""
