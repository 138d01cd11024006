"""Sums of products: matrix products, and sums over windows.

Read `matrices.py` first: a contraction becomes a product of matrices. Masks on both factors
become zeros (`masked_products.py`). Windows are for the library (`windowed.py`), for NumPy as
shifted products (`sliding.py`), or for loops in tiles: `tiles.py` finds what has that form,
`tiling.py` the sizes (`dotting.py` where vectors are along what is folded), and `tiled.py` runs it.
"""
