"""The collector: gives out a plan over HTTP, takes reports, and keeps what it has acknowledged."""
