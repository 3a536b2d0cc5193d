"""Preservation: what no result says any more is found, whatever the language."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncmem.optimize import Fact, Lost, PreservationReport, facts_of, lost, phrases
from asyncmem.optimize.preserving import counted_facts
from asyncmem.types import UserMemory

from ..work import work

LANGUAGES: dict[str, list[str]] = {
    language: [memory for memory, _ in pairs]
    for language, pairs in json.loads((Path(__file__).parents[2] / "data" / "languages.json").read_text()).items()
} | {
    "en": [
        "Moves to Leeds next month", "Has a cat named Bean", "Drinks soy milk every morning",
        "Has been a nurse for years",
        "Is allergic to peanuts", "Doesn't eat spicy food", "Phone number ends in 4711", "Brother is called Will",
        "Afraid of flying, prefers trains", "Used to be a sailor in Dalian", "Daughter Ida, 7, learns the violin",
        "Runs 10 km on Sundays but never on Mondays", "Wants short answers", "Bought a bike on 2024-05-03 for 300 €",
        'Says "no worries" a lot', "Has two hundred and five stamps", "Lives in St. Ives; owns 1.5 boats",
    ]
}  # fmt: skip


def memories(*texts: str) -> list[UserMemory]:
    """Memories with the ids 0, 1, 2…"""
    return [UserMemory(memory=text, memory_id=str(i)) for i, text in enumerate(texts)]


def lost_of(sources: list[str], *results: str) -> list[str]:
    """The texts of those that are lost."""
    return [sources[int(str(each.memory_id))] for each in lost(memories(*sources), memories(*results))]


@pytest.mark.parametrize(
    ("source", "result"),
    [
        ("Likes tea", "Enjoys tea and coffee"),
        ("Likes coffee", "The user enjoys tea and coffee."),
        ("Plays tennis", "Plays chess and tennis"),
        ("Has 2 parrots", "Keeps two parrots named Pip and Bo and works nights"),
        ("Parrots are named Pip and Bo", "Has two parrots named Pip and Bo."),
        ("Works as a nurse", "Lives in Oslo and works as a nurse"),
        ("Anna works as a nurse", "Anna lives in Oslo and works as a nurse"),
        ("Likes green tea", "The user lives in Oslo. They like green tea."),
        ("Likes green tea", "Has a dog. They like green tea."),
        ("Likes green tea", "Lives in Oslo, and she likes green tea."),
        ("Biscuit hates thunder", "Has a dog named Biscuit, who hates thunder."),
        ("Has a sister. She lives in Oslo.", "Has a sister. She lives in Oslo and works."),
        ("Does not eat meat", "Doesn't eat meat or fish"),
        ("Born on 2021-03-13", "Born on March 13, 2021, in Leeds"),
        ("Born on 13 марта 2021", "Born on 13.03.2021"),
        ("Salary is 4,100 euros", "Has a salary of 4100 euros"),
        ("Is 34 years old", "Is thirty-four years old"),
        ("Owns 5k stamps", "Owns 5000 stamps"),
        ("Owns 5 thousand stamps", "Owns 5,000 stamps"),
        ("Likes tea", "Likes tea but not coffee"),
        ("Has a dog", "Their dog barks"),
        ("Hat zwei Hunde", "Hat 2 Hunde und arbeitet nachts"),
        ("Живёт в Москве", "Работает учителем и живет в Москве"),
        ("Живёт в Москве", "Пользователь живёт в Москве."),
        ("Vive en Lisboa", "Trabaja de noche y vive en Lisboa"),
        ("有三只狗", "有两只猫和三只狗"),
        ("喜爱登山", "用户喜欢登山，住在苏州"),
        ("커피를 마신다", "아침에 커피를 마신다"),
        ("コーヒーが好き", "ユーザーはコーヒーが好きです"),
        ("👍", "👍 ok"),
        ("The user", "The user"),
        ('Motto is "carpe diem, always"', 'The motto is "carpe diem, always" and the user runs'),
        ("It is", "As it is"),
        ("7", "The 7 dwarfs"),
    ],
)
def test_what_is_carried(source: str, result: str) -> None:
    """Other endings, verbs that say the same, numbers and dates in another form: the fact is there."""
    assert lost_of([source], result) == []


@pytest.mark.parametrize(
    ("source", "result"),
    [
        ("Has 2 dogs", "Anna has 2 cats, Ben has 3 dogs"),
        ("Has 2 dogs", "Has 2 cats with 3 dogs"),
        ("Has 2 dogs", "Has 3 dogs"),
        ("Has 2 dogs", "Has dogs"),
        ("Born on 2021-03-13", "The user was born"),
        ("Has 10 kg", "Has 10 km"),
        ("Room 7 two beds", "Room 7 has beds"),
        ("Likes coffee", "Enjoys tea but not coffee"),
        ("Likes tea", "Sells tea"),
        ("Likes tea", "Hates tea"),
        ("Likes tea", "Used to like tea"),
        ("Likes tea", "Sometimes likes tea"),
        ("Likes tea", "Likes coffee"),
        ("Never drinks wine", "Drinks wine"),
        ("Drinks wine", "Never drinks wine"),
        ("Speaks French", "Speaks German and learns French"),
        ("Lives in Leeds", "Lives in Porto, works in Leeds"),
        ("Works as a nurse", "Anna lives in Oslo and works as a nurse"),
        ("Lives in Krakow", "Has a sister who lives in Krakow"),
        ("Hates thunder", "The dog Biscuit hates thunder"),
        ("Hates thunder", "Has a dog named Biscuit, who hates thunder."),
        ("Likes green tea", "Has a sister. She likes green tea."),
        ("Likes green tea", "Anna lives in Oslo. She likes green tea."),
        ("Likes green tea", "Anna lives in Oslo, and she likes green tea."),
        ("Likes green tea", "Keeps two parrots. They like green tea."),
        ("Likes green tea", "Has parents in Oslo. They like green tea."),
        ("Moved from Leeds to Porto", "Moved from Porto to Leeds"),
        ("Prefers tea over coffee", "Prefers coffee over tea"),
        ("Says Anna helps Ben", "Says Ben helps Anna"),
        ("Owns a black dog", "Owns a black cat and a white dog"),
        ("Has a dog named Biscuit", "Has a cat named Biscuit and a dog"),
        ("Has a cat named Biscuit", "Has a dog named Biscuit and a cat"),
        ("Lived in Porto", "Lives in Porto"),
        ("Works in Porto", "Worked in Porto"),
        ("Went to Rome", "Goes to Rome"),
        ("Работал в банке", "Работает в банке"),
        ("Ran a marathon 2019", "Ran 2019-03"),
        ("Does not eat meat", "Does eat meat"),
        ("Has a sister. She lives in Oslo.", "Has a sister. Lives in Oslo."),
        ("Lives in a house in Rome", "Lives in a house"),
        ("Tiene un hijo", "Tiene una hija"),
        ("有三只猫", "有两只猫和三只狗"),
        ("喜欢猫", "喜欢狗"),
        ("喜欢猫", "不喜欢猫"),
        ("弟弟叫王小明", "弟叫王小明"),
        ("住在成都", "都住在成"),
        ("매일 아침 커피를 마신다", "매일 아침 녹차를 마신다"),
        ("みかんが好き", "りんごが好き"),
        ("コーヒーが好き", "紅茶が好き"),
        ("👍", "ok"),
        ('Says "never mind"', "Says mind never"),
        ("커피를 마신다", "동생은 커피를 마신다"),
    ],
)
def test_what_is_lost(source: str, result: str) -> None:
    """The same words of somebody else, of another thing, turned around or of another time are not the fact."""
    assert lost_of([source], result) == [source]


@pytest.mark.parametrize("language", sorted(LANGUAGES))
@pytest.mark.parametrize("joined", ["\n", ". ", "; "])
def test_concatenation_loses_nothing(language: str, joined: str) -> None:
    """All sources one after the other, in any order and however they are parted, lose nothing."""
    texts = LANGUAGES[language]
    assert lost_of(texts, joined.join(texts)) == []
    assert lost_of(texts, joined.join(reversed(texts)) + ".") == []
    assert lost_of(texts, *texts) == []


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_every_source_that_is_dropped_is_found(language: str) -> None:
    """A concatenation without one source loses that one, and no other."""
    texts = LANGUAGES[language]
    for dropped in texts:
        assert lost_of(texts, "\n".join(t for t in texts if t != dropped)) == [dropped]


_VERBS = st.sampled_from(["Repairs", "Collects", "Paints", "Sells"])
_NOUNS = st.sampled_from(["clocks", "boats", "maps", "violins"])
_NAMES = st.sampled_from(["Ida", "Omar", "Lin", "Pilar"])


@st.composite
def _statements(draw: st.DrawFn) -> list[tuple[str, ...]]:
    """Statements in their words, no two about the same verb and thing."""
    pairs = draw(st.lists(st.tuples(_VERBS, _NOUNS), min_size=2, max_size=8, unique=True))
    return [
        (
            verb,
            str(draw(st.integers(2, 60))),
            noun,
            "with",
            draw(_NAMES),
            *draw(st.sampled_from([(), ("not", "daily")])),
        )
        for verb, noun in pairs
    ]


@given(_statements(), st.data())
def test_every_word_that_is_dropped_is_found(statements: list[tuple[str, ...]], data: st.DataObject) -> None:
    """A verb, number, thing, name or "not" that one statement of a summary lacks is found, and only that."""
    texts = [" ".join(statement) for statement in statements]
    at = data.draw(st.integers(0, len(texts) - 1))
    word = data.draw(st.sampled_from([w for w in statements[at] if w != "with"]))
    changed = [*texts[:at], " ".join(w for w in statements[at] if w != word), *texts[at + 1 :]]
    order = data.draw(st.permutations(changed))
    assert lost_of(texts, data.draw(st.sampled_from([". ", "\n", "! "])).join(order)) == [texts[at]]


@given(_statements())
def test_numbers_and_names_are_not_swapped(statements: list[tuple[str, ...]]) -> None:
    """When two statements exchange their numbers or their names, both are lost, unless these are the same."""
    for place in (1, 4):
        one, other = statements[:2]
        swapped = [
            (*one[:place], other[place], *one[place + 1 :]),
            (*other[:place], one[place], *other[place + 1 :]),
            *statements[2:],
        ]
        texts = [" ".join(words) for words in statements]
        expected = texts[:2] if one[place] != other[place] else []
        assert lost_of(texts, ". ".join(" ".join(words) for words in swapped)) == expected


@given(st.lists(st.text(min_size=1, max_size=60).filter(lambda t: t.strip()), min_size=1, max_size=5))
def test_any_text_can_be_read(texts: list[str]) -> None:
    """Whatever the sources are, reading them raises nothing, and what is there unchanged is not lost."""
    sources = [t for t in texts if any(c.isprintable() and not c.isspace() for c in t)]
    made = [UserMemory(memory=f"x {t}", memory_id=str(i)) for i, t in enumerate(sources)]
    assert lost(made, made) == []
    for memory in made:
        facts_of(memory.memory)
    lost(made, made[:1])


def test_digits_without_end_are_a_number() -> None:
    """A number of thousands of digits is compared like any other."""
    assert lost_of([f"Code {'7' * 5000} is safe"], f"Code {'7' * 4999} is safe") != []
    assert lost_of([f"Code {'7' * 5000} is safe"], f"The code {'7' * 5000} is safe") == []


def test_a_source_stands_in_one_result() -> None:
    """Sentences that belong together are not spread over results; those of a long source may be."""
    two = "Has a sister Ida. Ida lives in Oslo."
    assert lost_of([two], "Has a sister Ida", "Ida lives in Oslo") == [two]
    long = "Owns maps. Owns boats. Owns clocks. Owns stamps."
    assert lost_of([long], "Owns maps. Owns boats.", "Owns clocks. Owns stamps.") == []
    assert lost_of([long], "Owns maps. Owns boats.", "Owns clocks.") == [long]


def test_what_is_missing_is_named() -> None:
    """The facts that no clause has; everything where the words are there, but not together."""
    sources = memories("Has 3 dogs", "Lives in Oslo", "Doesn't eat meat")
    found = lost(sources, [UserMemory(memory="Has 2 dogs. Eats meat. Lives in Rome. Works in Oslo.")])
    assert found == [
        Lost("0", (Fact("number", "3"),)),
        Lost("1", (Fact("name", "Oslo"),)),
        Lost("2", (Fact("word", "eat"), Fact("word", "meat"), Fact("negation", "not"))),
    ]
    assert lost(memories("Owns maps"), []) == [Lost("0", (Fact("word", "Owns"), Fact("word", "maps")))]
    two = memories("Has a sister Ida. Ida lives in Oslo.")
    (spread,) = lost(two, memories("Has a sister Ida", "Ida lives in Oslo"))
    assert {fact.value for fact in spread.facts} == {"Has", "sister", "Ida", "lives", "Oslo"}
    assert lost(memories('Says "good night"'), memories("Says night good")) == [
        Lost("0", (Fact("quoted", "good night"),))
    ]


def test_facts_have_kinds() -> None:
    """Numbers, dates, names, quotations, negations and units are told apart from other words."""
    text = 'Is 34, lives in New York since 2019-05-01. Doesn\'t run 5 km, "not now". Born 1990. Never rests.'
    assert {(fact.kind, fact.value) for fact in facts_of(text)} >= {
        ("number", "34"),
        ("name", "York"),
        ("date", "2019-05-01"),
        ("date", "1990"),
        ("negation", "Doesn't"),
        ("negation", "Never"),
        ("unit", "km"),
        ("quoted", "not now"),
        ("word", "lives"),
    }
    assert ("negation", "不吃辣的菜") in {(fact.kind, fact.value) for fact in facts_of("不吃辣的菜")}
    assert facts_of("Costs 5 €")[-1] == Fact("unit", "€")
    assert counted_facts(memories("Has 2 dogs", "Has 3 cats")) == {"word": 4, "number": 2}


def test_a_report_is_empty_unless_told() -> None:
    """A report without anything says that nothing was checked and nothing is missing."""
    report = PreservationReport()
    assert (dict(report.checked), report.missing, report.asked_again, report.kept) == ({}, (), False, ())


def test_many_memories_take_work_in_proportion() -> None:
    """Four times the memories take some four times the work, not sixteen times; also when words repeat."""

    def needed(count: int) -> int:
        texts = [f"Collects {2 + i % 90} red maps of City{i} with friends" for i in range(count)]
        results = [". ".join(f"The user {t[0].lower()}{t[1:]}" for t in texts[i : i + 50]) for i in range(0, count, 50)]
        phrases.sentences.cache_clear()
        sources, made = memories(*texts), memories(*results)
        assert lost(sources, made) == []
        phrases.sentences.cache_clear()
        return work(lambda: lost(sources, made))

    assert needed(400) < 6 * needed(100)


@pytest.mark.parametrize(
    "piece", ["2 cats ", "x, ", "a and ", "猫", "あいう", "a", "1", "1,", "not ", '"a" ', "from to ", "2021-03-13 "]
)
def test_hostile_texts_take_bounded_work(piece: str) -> None:
    """Whatever is repeated through a long text, comparing it takes seconds, not minutes."""

    def needed(length: int = 4000) -> int:
        text = (piece * length)[:length].strip()
        changed = f"{text[: length // 2]} zz {text[length // 2 :]}"
        sources, made = memories(text, changed), [UserMemory(memory=f"qq {text}")]
        phrases.sentences.cache_clear()
        return work(lambda: lost(sources, made))

    assert needed() < 30_000_000
