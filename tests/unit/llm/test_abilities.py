"""What was learned, kept and handed on."""

import json

from asyncmem.llm import Abilities, Ability

KEY = ("m", "http://x")


def test_learning_says_whether_it_is_news() -> None:
    """The first time is news, the second is not."""
    abilities = Abilities()
    assert abilities.learn(KEY, tools=True)
    assert not abilities.learn(KEY, tools=True)


def test_dump_and_load_carry_everything_as_json() -> None:
    """What is dumped survives JSON and is the same when loaded elsewhere."""
    abilities = Abilities(clock=lambda: 5.0)
    abilities.learn(
        KEY,
        tier="json_object",
        loose="text",
        proven=("json_object",),
        tools=False,
        dropped=("seed",),
        renamed=(("max_tokens", "max_completion_tokens"),),
        dimensions=8,
    )
    other = Abilities(clock=lambda: 6.0)
    other.load(json.loads(json.dumps(abilities.dump())))
    assert other.get(KEY) == abilities.get(KEY)
    assert other.get(KEY).renamed == (("max_tokens", "max_completion_tokens"),)
    other.clear()
    assert other.get(KEY) == Ability()


def test_length_of_vectors_never_expires() -> None:
    """After an hour only the embedding's length is still known."""
    now = [0.0]
    abilities = Abilities(clock=lambda: now[0])
    abilities.learn(KEY, tier="text", dimensions=8)
    now[0] = 3_600.0
    assert abilities.get(KEY) == Ability(dimensions=8)
