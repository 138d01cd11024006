"""What folds and scalars mean: dtypes, monoids and scalar bodies."""
