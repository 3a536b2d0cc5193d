"""Turns of a conversation, and which of the assistant's words a user's answer takes up (pure)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from .claims import is_negated
from .sentences import sentences_of

_QUESTION = re.compile(r"[?？؟]")
_TO_YOU = re.compile(
    r"\b(?:you|your|you're|du|dein\w*|sie|ihr\w*|tú?|tus?|usted\w*|ты|твой|твоя|вы|ваш\w*|أنت|لديك)\b"
    r"|[你您]|あなた|さんは|당신",
    re.IGNORECASE,
)
_PRESUMES = re.compile(
    r"^\W*(?:as|since|because|given that|now that|knowing|da|weil|como|ya que|так как|раз)\b[^,，;.!?]*[,，;]",
    re.IGNORECASE,
)
_PLEASANT = re.compile(
    r"\b(?:thanks?|thank you|thx|cheers|great|good|nice|cool|ok(?:ay)?|perfect|awesome|lovely|wonderful|super|idea"
    r"|hi|hello|hey|sounds?|that|it|a|so|very|much|haha|lol|wow|danke\w*|gut|prima|toll|schön|gracias|genial|vale|bien|hola|merci"
    r"|спасибо|отлично|привет|хорошо|شكرا|شكرًا|مرحبا|رائع)\b|谢谢|多谢|你好|好的?|ありがとう(?:ございます)?|こんにちは|감사합니다|고마워요?|안녕하세요",
    re.IGNORECASE,
)
_ASSENT = re.compile(
    r"\b(?:yes|yeah|yep|yup|exactly|right|correct|sure|of course|indeed|absolutely|definitely|totally|certainly|always"
    r"|true|first|second|third|fourth|last|latter|former|both|all of|either|option|one"
    r"|ja|genau|stimmt|richtig|klar|natürlich|immer|erste\w*|zweite\w*|dritte\w*|letzte\w*|beide\w*"
    r"|sí|si|claro|exacto|correcto|siempre|primer\w*|segund\w*|tercer\w*|últim\w*|ambos"
    r"|да|конечно|точно|верно|всегда|перв\w*|втор\w*|трет\w*|последн\w*|оба|обе"
    r"|نعم|أجل|صحيح|طبعا|دائما|الأول\w*|الثاني\w*|الثالث\w*)\b"
    r"|^\W*(?:[a-d]|\d)\W*$|是的?|对的?|對|没错|当然|第[一二三四]|はい|ええ|うん|そう|もちろん|番目|네|예|응|맞아요?|그래요?|번째",
    re.IGNORECASE,
)
_SHORT = 8
"""Words of an answer that leaves to the question what it is about."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What one user turn says.

    Attributes:
        index: its place in the messages that were given.
        text: the user's words.
        day: when it was said.
        question: what of the assistant's words before it the user answers; "" if that is nothing.
        told: all of the assistant's words before it.
    """

    index: int
    text: str
    day: date
    question: str = ""
    told: str = ""

    @property
    def assents(self) -> bool:
        """Whether the answer takes the question's words as its own, or denies them."""
        return bool(self.question) and (_ASSENT.search(self.text) is not None or is_negated(self.text))


def user_turns(turns: Sequence[tuple[str, str, date, int]]) -> list[Turn]:
    """The user's turns, each with the question that it answers.

    Args:
        turns: role, text, day and index of each turn of the conversation, in order.
    """
    found: list[Turn] = []
    asked: list[str] = []
    before = "user"
    for role, text, day, index in turns:
        if role == "user":
            told = "\n".join(asked)
            found.append(Turn(index, text, day, asked_for(told, text), told))
        else:
            asked = [*asked, text] if before != "user" else [text]
        before = role
    return found


def asked_for(said: str, answer: str) -> str:
    """The assistant's words that an answer refers to.

    Only a question has an answer; a thank-you is none; and what the assistant states or presumes about the user is
    no part of the question.
    """
    if not _QUESTION.search(said) or not re.search(r"\w", _PLEASANT.sub(" ", answer)):
        return ""
    if len(answer.split()) > _SHORT and not _ASSENT.search(answer):
        return ""
    sentences = sentences_of(said)
    kept = [s for s in sentences if _QUESTION.search(s) or not _TO_YOU.search(s)]
    return " ".join(_PRESUMES.sub("", s) for s in kept)
