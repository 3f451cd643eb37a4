"""What a run can put around its method: one layer a file, innermost first in ``stack.LAYERS``."""
