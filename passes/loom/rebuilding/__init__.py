"""Operations that differ from others in a few respects: what all passes rewrite with.

Read `operations.py` first, which replaces an operation, then `bodies.py`, which puts bodies
together. Outputs, and what nobody reads, are taken away by `outputs.py` and `tidying.py`; index
dimensions are split in `digits.py`, and by residue classes in `residues.py`.
"""
