"""Ways to find memories: one file per retrieval method."""
