"""Model calls: the only importer of litellm."""
