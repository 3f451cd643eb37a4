"""Engines: where the parts of a large input are worked on: this process, a pool of processes, a Dask cluster."""
