"""Papers' tables and figures, measured by their own protocols, beside what was published. **NOT private**."""
