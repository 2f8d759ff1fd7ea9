"""Conformance trainers: see README.md."""
