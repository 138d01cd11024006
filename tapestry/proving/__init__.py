"""Comparing programs as functions over the reals, and what that rests on."""
