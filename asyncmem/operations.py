"""What a model may decide, as data, and the pure rules that such decisions pass."""

import re
import unicodedata
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b

_QUOTES = str.maketrans(
    {"‘": "'", "’": "'", "‛": "'", "ʼ": "'", "`": "'", "´": "'", "“": '"', "”": '"', "„": '"', "−": "-"}
)
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_PROSE = r"""[.,;:!?'"()\[\]{}«»‹›。、，；：！？「」『』（）《》〈〉【】…·‥—–\-¿¡؟،؛।]"""
_OPENING = r"""[,;:!?'"()\[\]{}«»‹›。、「」『』《》〈〉【】…·‥—–¿¡؟،؛।]"""
_IN_CJK = r"[.,;:!?'\"()。、「」『』《》〈〉【】…·‥—]"
# Punctuation is prose unless it stands inside a word or number ("1.5", "node.js", "can't") or leads one after a
# space ("-5", ".NET"). "#", "+", "%", "<" and their like are never prose: "C", "C#" and "C++" are three names.
_PUNCTUATION = re.compile(
    rf"(?<=\w){_PROSE}+(?!\w)|(?<!\w){_PROSE}+(?!\w)|(?<!\w){_OPENING}+(?=\w)"
    rf"|(?<=[{_CJK}]){_IN_CJK}+|{_IN_CJK}+(?=[{_CJK}])"
)
_CJK_SPACE = re.compile(rf"(?<=[{_CJK}])\s+|\s+(?=[{_CJK}])")


@dataclass(frozen=True, slots=True)
class Add:
    """Store a new memory.

    ``suspect`` marks text that looks like instructions to a model; ``sources`` are the indexes of the messages whose
    words it rests on.
    """

    memory: str
    topics: tuple[str, ...] = ()
    evidence: str | None = None
    suspect: bool = False
    sources: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Update:
    """Replace a memory's text; ``topics=None`` keeps its topics. The rest is as in ``Add``."""

    memory_id: str
    memory: str
    topics: tuple[str, ...] | None = None
    evidence: str | None = None
    suspect: bool = False
    sources: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove one memory."""

    memory_id: str


@dataclass(frozen=True, slots=True)
class Clear:
    """Remove every memory of the one user that the capture is about."""


Operation = Add | Update | Delete | Clear


@dataclass(frozen=True, slots=True)
class Grounded:
    """An operation, and where the words stand that it rests on.

    Attributes:
        operation: what is to be done.
        prints: fingerprints of the sentences with those words.
        said_at: when they were said, if that is known.
    """

    operation: Operation
    prints: frozenset[bytes] = frozenset()
    said_at: datetime | None = None

    @property
    def evidence(self) -> str | None:
        """The user's words."""
        return getattr(self.operation, "evidence", None)

    @property
    def sources(self) -> tuple[int, ...]:
        """Indexes of the messages with those words."""
        return getattr(self.operation, "sources", ())


def fold(text: str) -> str:
    """The text with case, white space, prose punctuation and Unicode form folded away.

    Two memories that fold to the same string say the same. What carries meaning stays: signs, decimal points,
    apostrophes and hyphens inside words, and symbols such as ``#``, ``+``, ``%``.
    """
    plain = text if text.isascii() else _plain(text)
    spaced = " ".join(_PUNCTUATION.sub(" ", plain.translate(_QUOTES).casefold()).split())
    return _CJK_SPACE.sub("", spaced) or " ".join(plain.casefold().split())


def _plain(text: str) -> str:
    """In Unicode's compatibility form, without characters that only format."""
    normal = unicodedata.normalize("NFKC", text.translate(_QUOTES))
    return "".join(c for c in normal if c.isascii() or unicodedata.category(c) != "Cf")


def identity(text: str, agent_id: str | None, team_id: str | None) -> bytes:
    """16 bytes that are equal for memories of one user, agent and team that say the same."""
    parts = [fold(text), agent_id or "", team_id or ""]
    return blake2b("\x1f".join(parts).encode(), digest_size=16).digest()
