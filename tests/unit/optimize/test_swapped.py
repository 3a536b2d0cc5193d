"""Who does what to whom, how many of what, and what is said in brackets: neither swapped nor refused."""

import pytest

from asyncmem.optimize import invented, lost
from asyncmem.optimize.supporting import is_foreign, supported
from asyncmem.types import UserMemory


def memories(*texts: str) -> list[UserMemory]:
    """Memories with the ids 0, 1, 2…"""
    return [UserMemory(memory=text, memory_id=str(i)) for i, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("source", "result"),
    [
        ("Wakes up at 6 am", "Wakes up at 6 pm"),
        ("Gets up at 8 a.m.", "Gets up at 8 p.m."),
        ("Gets up at 6:30 am every day", "Gets up at 6:30 pm every day"),
        ("Owes 1,200 euros", "Owes 1.2 euros"),
        ("Verdient 1.500 Euro", "Verdient 1.5 Euro"),
        ("Owes 1.2 euros", "Owes 1,200 euros"),
        ("Balance is -200 euros", "Balance is 200 euros"),
        ("Balance is −200 euros", "Balance is 200 euros"),
        ("Balance is 200 euros", "Balance is -200 euros"),
        ("Left eye has -2.5 dioptres", "Left eye has +2.5 dioptres"),
        ("Blood group is 0-", "Blood group is 0+"),
        ("Blood type is A-", "Blood type is A+"),
        ("Blood type is AB-", "Blood type is AB"),
        ("Owes -€200", "Owes €200"),
        ("Anna owes Ben 50 euros", "Ben owes Anna 50 euros"),
        ("The dog chased the cat", "The cat chased the dog"),
        ("Ben is Anna's father", "Anna is Ben's father"),
        ("Ben is Anna's father", "Ben's father is Anna"),
        ("Maria is the manager of Tom", "Tom is the manager of Maria"),
        ("Maria is the manager of Tom", "Maria's manager is Tom"),
        ("Anna lent Ben 50 euros", "Ben lent Anna 50 euros"),
        ("Anna liebt Ben", "Ben liebt Anna"),
        ("Ana quiere a Luis", "Luis quiere a Ana"),
        ("Beat Ben 6:4 in tennis", "Ben beat 6:4 in tennis"),
        ("Dogs chase cats", "Cats chase dogs"),
        ("Anna lives in Oslo", "Anna's brother lives in Oslo"),
        ("Lost to Ben 6:4", "Lost to Ben 4:6"),
        ("Max (5) and Eva (8)", "Max (8) and Eva (5)"),
        ("Max (5) and Eva (8)", "Max, 8, and Eva, 5"),
        (
            "Twins Max (allergic to nuts) and Eva (allergic to milk)",
            "Twins Max (allergic to milk) and Eva (allergic to nuts)",
        ),
        ("Max: nuts, Eva: milk", "Max: milk, Eva: nuts"),
        ("Has children Max (5) and Eva (8)", "Has children Max (8) and Eva (5)"),
        ("Room 12 on floor 3", "Room 3 on floor 12"),
        ("Plays chess (badly) and tennis", "Plays chess and tennis (badly)"),
    ],
)
def test_what_is_swapped_is_lost(source: str, result: str) -> None:
    """The same words with another half of the day, sign, size, subject, object, bracket or place: not the fact."""
    assert [each.memory_id for each in lost(memories(source), memories(result))] == ["0"]


@pytest.mark.parametrize(
    ("source", "result"),
    [
        ("Wakes up at 6 am", "Wakes up at 6 a.m. every day"),
        ("Gets up at 6:00 am", "Gets up at 6 am and runs"),
        ("Wakes up at 8 a.m. every day", "Wakes up at 8 am every day and runs"),
        ("Owes 1,200 euros", "Owes 1200 euros now"),
        ("Owes 1200 euros", "Owes 1.200 euros now"),
        ("Weighs 1.5 kg", "Weighs 1,5 kg now"),
        ("Owes 1,200.50 euros", "Owes 1200.5 euros now"),
        ("Works 9-5", "Works 9-5 daily"),
        ("Is 10-12 years old", "Is 10-12 years old now"),
        ("Balance −200 euros", "Balance -200 euros now"),
        ("Max (5) and Eva (8)", "Max (5) and Eva (8) swim"),
        ("Daughter Ida, 7, learns the violin", "Lives in Oslo. Daughter Ida, 7, learns the violin"),
        ("Plays chess (badly)", "Plays chess (badly) and tennis"),
        ("Favourite color: blue", "The favourite color is blue."),
        ("Lives in Oslo", "Lives in Oslo, where she works"),
    ],
)
def test_other_ways_to_write_it_are_the_same(source: str, result: str) -> None:
    """Hours, thousands, decimals, ranges, signs and brackets are read however they are written."""
    assert lost(memories(source), memories(result)) == []


@pytest.mark.parametrize(
    ("sources", "summary"),
    [
        (["Abita a Milano", "Ha due figli", "Non mangia pesce"], "Abita a Milano, ha due figli e non mangia pesce."),
        (["Mora em Lisboa", "Tem dois filhos", "Não come carne"], "Mora em Lisboa, tem dois filhos e não come carne."),
        (
            [
                "Vive en Valencia",
                "Trabaja como arquitecta",
                "Tiene un hijo llamado Hugo",
                "Hugo tiene 4 años",
                "No come carne",
            ],
            "Vive en Valencia y trabaja como arquitecta. Tiene un hijo llamado Hugo, que tiene 4 años. No come carne.",
        ),
        (
            ["Wohnt in Kiel", "Hat zwei Kinder", "Isst kein Fleisch"],
            "Wohnt in Kiel, hat zwei Kinder und isst kein Fleisch.",
        ),
        (["Ben is from Manchester", "Ben never drinks coffee"], "Ben is from Manchester and never drinks coffee."),
        (["Ben is a nurse", "Ben drives a Skoda"], "Ben is a nurse. He drives a Skoda."),
        (["Habite à Lyon", "Travaille comme professeur"], "Habite à Lyon et travaille comme professeur."),
        (["Su novia se llama Lucía", "Su novia es médica"], "Su novia se llama Lucía y es médica."),
        (["Lives in Leeds", "Works in Leeds"], "Lives and works in Leeds."),
        (["Mag Tee", "Mag keine Katzen"], "Mag Tee, aber keine Katzen."),
        (
            ["Woont in Utrecht", "Houdt van fietsen", "Eet geen vlees"],
            "Woont in Utrecht, houdt van fietsen en eet geen vlees.",
        ),
        (["Hat einen Hund namens Balu", "Balu ist ein Labrador"], "Hat einen Hund namens Balu, der ein Labrador ist."),
        (["Tiene un perro llamado Balu", "Balu es un labrador"], "Tiene un perro llamado Balu, que es un labrador."),
        (["A un chien nommé Balu", "Balu est un labrador"], "A un chien nommé Balu, qui est un labrador."),
    ],
)
def test_a_good_summary_is_taken(sources: list[str], summary: str) -> None:
    """A summary that says all of it in the sources' words loses nothing, is not foreign, and keeps each sentence."""
    made = memories(*sources)
    assert lost(made, memories(summary)) == []
    assert invented(made, memories(summary)) == []
    assert not is_foreign(made, summary)
    assert supported(made, summary) == summary
