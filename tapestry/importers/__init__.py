"""Programs from elsewhere, as weft: PyTorch's graphs, StableHLO, expressions of Python.

Each importer calls a `ProgramBuilder` once per operator; what comes out is a module that every
tool takes.
"""
