"""Passes, in a folder per dialect that they rewrite."""
