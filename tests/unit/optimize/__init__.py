"""The optimization room: pure of storage."""
