"""Training of a draft for a target: requests, the target's replies, and a layer that predicts
them."""
