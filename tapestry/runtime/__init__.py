"""Executors: the ways to run a program on NumPy arrays, behind one small interface."""
