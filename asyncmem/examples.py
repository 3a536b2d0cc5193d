"""Worked examples of captures, which small models follow far better than rules. Their names occur in no test."""

from dataclasses import dataclass

DAY = "Tuesday 2025-05-06, yesterday 2025-05-05"
"""When everything in the examples was said."""


@dataclass(frozen=True, slots=True)
class Example:
    """A worked example.

    Attributes:
        memories: what is known.
        turns: role and text of each turn.
        operations: op, alias, memory, topics and evidence of each.
    """

    memories: tuple[str, ...]
    turns: tuple[tuple[str, str], ...]
    operations: tuple[tuple[str, str, str, tuple[str, ...], str], ...]


EXAMPLES = (
    Example(
        ("Plays the cello",),
        (
            ("assistant", "A comedy or a drama?"),
            ("user", "A comedy. I'm Ana. Yesterday I got a cat, Moss!"),
        ),
        (
            ("add", "", "Prefers comedies to dramas", ("films",), "A comedy"),
            ("add", "", "Name is Ana", ("name",), "I'm Ana"),
            ("add", "", "Got a cat, Moss, on 2025-05-05", ("pets",), "Yesterday I got a cat, Moss"),
        ),
    ),
    Example(
        ("Works at Halden Bank", "Prefers tea to coffee"),
        (("user", "I'm at Corner Bakery now. And I drink coffee these days."),),
        (
            (
                "update",
                "1: Works at Halden Bank",
                "Works at Corner Bakery; was at Halden Bank before",
                ("work",),
                "I'm at Corner Bakery now",
            ),
            (
                "update",
                "2: Prefers tea to coffee",
                "Drinks coffee; preferred tea before",
                ("drinks",),
                "I drink coffee these days",
            ),
        ),
    ),
    Example(
        ("Plays the cello",),
        (("user", "Thanks! As you know, I play the cello. What does rye mean in Danish?"),),
        (),
    ),
    Example(
        ("Has a son, Ivo",),
        (("user", "Please forget about my son."),),
        (("delete", "1: Has a son, Ivo", "", (), "forget about my son"),),
    ),
)


def example_in(language: str | None) -> Example:
    """The last example, which small models imitate most: a move yesterday and a dislike, in the user's language."""
    said, moved, dislikes, dislike = _LAST.get(language or "", _LAST["English"])
    sentence = next(mark for mark in ("。", ".") if mark in said)
    first = said.split(sentence)[0]
    return Example(
        ("Plays the cello",),
        (("user", said),),
        (("add", "", moved, (_PLACE.get(language or "", "place"),), first), ("add", "", dislike, (), dislikes)),
    )


_PLACE = {
    "Chinese": "住处",
    "Japanese": "住まい",
    "Korean": "거주지",
    "German": "Wohnort",
    "Russian": "место",
    "Arabic": "السكن",
}
_LAST = {
    "English": (
        "Yesterday I moved to Oslo. I don't eat fish.",
        "Moved to Oslo on 2025-05-05",
        "I don't eat fish",
        "Doesn't eat fish",
    ),
    "Chinese": ("我昨天搬到了奥斯陆。我不吃鱼。", "2025-05-05搬到了奥斯陆", "我不吃鱼", "不吃鱼"),
    "Japanese": (
        "昨日オスロに引っ越しました。魚は食べません。",
        "2025-05-05にオスロに引っ越した",
        "魚は食べません",
        "魚を食べない",
    ),
    "Korean": (
        "어제 오슬로로 이사했어요. 생선은 안 먹어요.",
        "2025-05-05에 오슬로로 이사했다",
        "생선은 안 먹어요",
        "생선을 안 먹는다",
    ),
    "German": (
        "Gestern bin ich nach Oslo gezogen. Ich esse keinen Fisch.",
        "Ist am 2025-05-05 nach Oslo gezogen",
        "Ich esse keinen Fisch",
        "Isst keinen Fisch",
    ),
    "Spanish": (
        "Ayer me mudé a Oslo. No como pescado.",
        "Se mudó a Oslo el 2025-05-05",
        "No como pescado",
        "No come pescado",
    ),
    "French": (
        "Hier j'ai déménagé à Oslo. Je ne mange pas de poisson.",
        "A déménagé à Oslo le 2025-05-05",
        "Je ne mange pas de poisson",
        "Ne mange pas de poisson",
    ),
    "Italian": (
        "Ieri mi sono trasferita a Oslo. Non mangio pesce.",
        "Si è trasferita a Oslo il 2025-05-05",
        "Non mangio pesce",
        "Non mangia pesce",
    ),
    "Portuguese": (
        "Ontem mudei-me para Oslo. Não como peixe.",
        "Mudou-se para Oslo em 2025-05-05",
        "Não como peixe",
        "Não come peixe",
    ),
    "Russian": (
        "Вчера я переехала в Осло. Я не ем рыбу.",
        "Переехала в Осло 2025-05-05",
        "Я не ем рыбу",
        "Не ест рыбу",
    ),
    "Arabic": (
        "انتقلت أمس إلى أوسلو. لا آكل السمك.",
        "انتقل إلى أوسلو في 2025-05-05",
        "لا آكل السمك",
        "لا يأكل السمك",
    ),
}
