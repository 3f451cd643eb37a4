"""State machines on bytes: keys, masks, messages. Imports core only."""
