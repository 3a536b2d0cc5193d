"""Worked examples of captures, which small models follow far better than rules. Their names occur in no test."""

from dataclasses import dataclass
from datetime import date

DAY = date(2025, 5, 6)
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
        ("Lives alone", "Has a son, Ivo"),
        (("user", "Please forget about my son."),),
        (("delete", "2: Has a son, Ivo", "", (), "forget about my son"),),
    ),
    Example(
        ("Plays the cello",),
        (("user", "我昨天搬到了青岛，我不吃鱼。"),),
        (
            ("add", "", "2025-05-05搬到了青岛", ("住处",), "我昨天搬到了青岛"),
            ("add", "", "不吃鱼", ("饮食",), "我不吃鱼"),
        ),
    ),
)
