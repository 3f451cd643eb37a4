"""A published plan: made, read, priced, and grown by the answers of its closed rounds."""
