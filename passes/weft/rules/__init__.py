"""Where rules about metakernels apply in a program, and what they produce.

Read `matching.py` first: rules are searched among applications (`searching.py`), and loom
operations are read as applications where they are what these expand to (`recognizing.py`).
`productions.py` writes what a rule produces, in an order that `order.py` keeps.
"""
