"""Fingerprints of what was said: they tell the same words again, and hold none of them (pure)."""

from collections.abc import Sequence
from hashlib import blake2b

from .operations import fold
from .sentences import parts_of, sentences_of
from .types import Message, Scope


def _digest(size: int, *parts: str) -> bytes:
    return blake2b("\x1f".join(parts).encode(), digest_size=size).digest()


def conversation_prints(scope: Scope, messages: Sequence[Message]) -> list[bytes]:
    """One fingerprint a message, each of the conversation up to and with it.

    A conversation that goes on therefore has all the fingerprints of what it was before, and the same words in
    another conversation have others: a second "yes" is no repetition of the first.
    """
    last = _digest(16, scope.user_id, scope.agent_id or "", scope.team_id or "")
    prints: list[bytes] = []
    for message in messages:
        at = "" if message.at is None else f"{message.at.timestamp():.3f}"
        last = _digest(16, last.hex(), message.role, message.content.strip(), at)
        prints.append(last)
    return prints


def key_print(scope: Scope, key: str) -> bytes:
    """The fingerprint of an idempotency key, which is one user's own."""
    return _digest(16, "key", scope.user_id, key)


def job_print(user_id: str, job_id: str, tries: int) -> bytes:
    """The fingerprint of a scheduled capture; a dead letter that is tried anew has another one."""
    return _digest(16, "job", user_id, job_id, str(tries))


def user_print(user_id: str) -> str:
    """Stands for a user where no id may be kept."""
    return _digest(16, user_id).hex()


def sentence_prints(text: str) -> set[bytes]:
    """The fingerprints of a text's sentences."""
    return {_digest(8, folded) for sentence in sentences_of(text) if (folded := fold(sentence))}


def evidence_prints(evidence: str, texts: Sequence[str]) -> set[bytes]:
    """The fingerprints of the sentences that hold the evidence, or that it holds."""
    pieces = [folded for part in parts_of(evidence) if (folded := fold(part))]
    sentences = [fold(sentence) for text in texts for sentence in sentences_of(text)]
    within = (s for s in sentences if s and any(s in piece or piece in s for piece in pieces))
    return {_digest(8, sentence) for sentence in within}
