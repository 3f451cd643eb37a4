"""Reports and messages as columns, in Parquet and Arrow files."""
