"""Extents made smaller: the axes that the dimensions of programs lie on, and what ties them."""
