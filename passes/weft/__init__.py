"""Passes that rewrite weft: applications become loom operations.

Each pass is a module here, named like it: read `apply.py` first. `recipes` is what an application
becomes, `rules` is where rules about applications apply, and what they produce.
"""
