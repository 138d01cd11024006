"""How `loom-derive` finds folds to derive in a program, and writes what it derived."""
