"""What `loom-simplify` folds away: views, assemblies, constants, folds of one point.

Read `reshape.py` first: how a reshape becomes part of a projection. Each module is a few
patterns, or what makes these legal; other passes use some of them.
"""
