"""Speech synthesis: cutting a reply into clauses, writing them as they are spoken, and the
synthesizers."""
