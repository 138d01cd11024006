"""What an application becomes, prepared once for all that are alike.

Read `recipe.py` first: a recipe, and how it is stamped out. `making.py` makes one from what a
template expands to, with bodies (`bodies.py`), monoids (`monoids.py`) and parameters
(`parameters.py`).
"""
