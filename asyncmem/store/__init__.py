"""Persistence on MongoDB: the only importer of pymongo and beanie."""
