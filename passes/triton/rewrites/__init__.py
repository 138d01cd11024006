"""Kernels that are written, made faster or exact.

Each module is one rewrite of a kernel's IR, and knows nothing of what the kernel was made from.
`branches.py` is one to read first.
"""
