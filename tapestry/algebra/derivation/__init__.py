"""Folds that depend on earlier folds, derived into one pass by algebra alone."""
