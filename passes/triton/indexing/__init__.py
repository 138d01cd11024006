"""The points that a program computes, and where these lie in tensors.

Read `spaces.py` first: an index space with plain integers, and accesses as linear forms. Then
`positions.py`: lanes of a tile, their coordinates, offsets and masks. `grids.py` says which
blocks a program computes, `spans.py` how far its loops go, `walks.py` what such a loop is. In
which order dimensions lie on an axis, and along which axes tiles are, is for `orders.py`,
`facing.py` and `runs.py`.
"""
