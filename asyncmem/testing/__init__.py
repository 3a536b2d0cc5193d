"""Doubles for tests of asyncmem and of what is built on it."""
