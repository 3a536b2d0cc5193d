"""Tests of the retrieval methods."""
