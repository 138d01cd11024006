"""Values of a kernel: tiles that a builder broadcasts, and what scalar bodies become on them.

Read `builder.py` first, then `bodies.py`. What each scalar operation becomes is in `scalars.py`,
`integers.py` and `conversions.py`; states of monoids are merged, folded and scanned in
`folds.py`.
"""
