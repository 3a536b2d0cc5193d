"""Async user memory for LLM applications."""
