"""The paper's experiments: its numbers, and ours beside them."""
