"""The command line's programs: one file each. ``cli`` registers them."""
