"""Passes that rewrite weft: applications become loom operations."""
