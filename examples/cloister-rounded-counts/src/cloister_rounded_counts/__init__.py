"""An example plugin: a count oracle whose answers are multiples of a public step."""
