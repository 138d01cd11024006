"""Large groups and operations in parts that fit the cache, on all threads.

Read `preparing.py` first. `cuts.py` says which dimensions are cut, and into how long parts;
`inside.py` which points of a part count; `sharing.py` has threads play the tapes of parts. Parts
of a fold merge (`folded_parts.py`).
"""
