"""Files that outlive crashes and that processes share. Knows neither what is in them nor why."""
