"""Float32 vectors as BSON holds them."""

from bson.binary import Binary

FLOAT32 = b"\x27\x00"
"""Type and padding of a float32 vector. Source: the BSON binary subtype 9 specification."""
_VECTOR = 9


def as_binary(values: bytes) -> Binary:
    """Little-endian float32 values as a binary vector."""
    return Binary(FLOAT32 + values, _VECTOR)
