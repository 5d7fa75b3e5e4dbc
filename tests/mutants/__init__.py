"""Mutants: small faults that are planted in the product, to see which tests tell of them (docs/development.md)."""
