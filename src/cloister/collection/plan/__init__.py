"""Published plan: made, read, priced, and extended by the answers of its closed rounds."""
