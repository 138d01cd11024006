"""The commands `tapestry-opt` and `tapestry`."""
