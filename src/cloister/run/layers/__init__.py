"""Layers that a run can put around its method, one a file; ``stack.LAYERS`` lists them."""
