"""Recognition: voice activity, streaming agreement, and the engines behind `engines.Asr`."""
