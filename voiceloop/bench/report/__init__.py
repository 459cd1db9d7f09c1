"""What a reader sees of a record: one module draws, the others say what there is to be drawn."""
