"""How `loom-split-complex` makes pairs of real numbers of complex ones.

Read `scalars.py` first: what each scalar operation is in real arithmetic. Then bodies
(`bodies.py`), what has them (`signatures.py`), and what only moves cells (`tensors.py`).
"""
