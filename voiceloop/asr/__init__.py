"""Speech recognition: voice activity detection, turn detection, recognisers and word agreement."""
