"""Training of a draft: requests, the target's replies, and a layer that predicts them."""
