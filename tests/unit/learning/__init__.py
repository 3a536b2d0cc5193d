"""Unit tests of learning."""
