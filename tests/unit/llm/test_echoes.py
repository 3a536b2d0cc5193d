"""What a provider says, told from what it repeats of our request; and that nothing it repeats is shown."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncmem.errors import ModelQuotaError, ModelRequestError
from asyncmem.llm.abilities import Abilities
from asyncmem.llm.echoes import own_words, without_words
from asyncmem.llm.failures import Failure, to_error
from asyncmem.llm.folding import fold, folded
from asyncmem.llm.schemas import plain_schema, texts, with_schema
from asyncmem.llm.scrubbing import MAX_DETAIL
from asyncmem.llm.verdicts import Drop, Fatal, NoTools, StepDown, judge
from asyncmem.llm.vocabulary import is_standard
from asyncmem.testing import FAILURES, FORMAT_REFUSALS, TOOL_REFUSALS

from ..work import work
from .play import KEY, context, failure, play
from .schemas import Ids, Node

SAID = [
    "Remember that my door code is 4711, please. I'm Bo.",
    'She said "use json_object {strict}, not tools" and\nleft [temperature unknown',
    "hi",
    "(see [1",
    'path "C:\\\\" \'}] and "messages": [',
    "{",
    "Zoë wohnt in der Straße 5 😀 \\ C:\\temp",
    "我的生日是五月三日",
]
WIRE = {"type": "function", "function": {"name": "search", "parameters": {"type": "object", "properties": {}}}}


def body(said: str, dialect: str, tools: bool) -> dict[str, Any]:
    """A request as it goes over the wire."""
    turns = with_schema([{"role": "system", "content": "You choose."}, {"role": "user", "content": said}], Ids)
    schema = {**Ids.model_json_schema(), "additionalProperties": False}
    offered = {"tools": [WIRE], "tool_choice": "auto", "parallel_tool_calls": True} if tools else {}
    match dialect:
        case "openai":
            form = {"type": "json_schema", "json_schema": {"schema": schema, "name": "Ids", "strict": True}}
            return {
                "model": "openai/foo-1:x", "messages": turns, "temperature": 0.0, "max_tokens": 2048, "seed": 7,
                "response_format": form, "stream": False, **offered,
            }  # fmt: skip
        case "anthropic":
            return {
                "model": "claude", "messages": turns[1:], "system": [{"type": "text", "text": turns[0]["content"]}],
                "temperature": 0.0, "max_tokens": 2048, "output_format": {"type": "json_schema", "schema": schema},
            }  # fmt: skip
        case "gemini":
            parts = [{"role": "user", "parts": [{"text": turn["content"]}]} for turn in turns]
            config = {"temperature": 0.0, "max_output_tokens": 9, "response_mime_type": "application/json"}
            return {"contents": parts, "generationConfig": {**config, "response_json_schema": schema}}
        case "ollama":
            return {
                "model": "foo", "messages": turns, "format": plain_schema(Ids), "stream": False,
                "options": {"temperature": 0.0, "num_predict": 2048},
            }  # fmt: skip
        case _:
            spec = {"toolSpec": {"inputSchema": {"json": schema}, "name": "json_tool_call"}}
            return {
                "messages": [{"role": "user", "content": [{"text": said}]}], "system": [{"text": turns[0]["content"]}],
                "inferenceConfig": {"temperature": 0.0, "maxTokens": 2048},
                "toolConfig": {"tools": [spec], "toolChoice": {"tool": {"name": "json_tool_call"}}},
            }  # fmt: skip


WRITTEN: Mapping[str, Callable[[Any], str]] = {
    "json": json.dumps,
    "unicode": lambda value: json.dumps(value, ensure_ascii=False),
    "dense": lambda value: json.dumps(value, separators=(",", ":")),
    "indented": lambda value: json.dumps(value, indent=2),
    "python": repr,
    "twice": lambda value: json.dumps(json.dumps(value)),
    "thrice": lambda value: json.dumps(json.dumps(json.dumps(value, ensure_ascii=False))),
    "html": lambda value: json.dumps(value).replace('"', "&quot;"),
    "arguments": lambda value: f"Request({', '.join(f'{name}={part!r}' for name, part in value.items())})",
}
FRAMES: list[Callable[[str], str]] = [
    lambda echo: f"Your request could not be processed: {echo}",
    lambda echo: json.dumps({"error": {"message": f"Bad: {echo}", "type": "invalid_request_error", "param": None}}),
    lambda echo: str({"detail": [{"type": "missing", "loc": ["body", "x"], "msg": "Field", "input": echo}]}),
    lambda echo: f"<html>{echo}</html>",
]
bodies = st.builds(
    body,
    st.sampled_from(SAID) | st.text(max_size=80).filter(str.strip),
    st.sampled_from(["openai", "anthropic", "gemini", "ollama", "bedrock"]),
    st.booleans(),
)


def told(sent: Mapping[str, Any]) -> list[str]:
    """Every text of a wire body that came from messages."""
    parts = [*sent.get("messages", []), *sent.get("contents", []), *sent.get("system", [])]
    return [
        piece if isinstance(piece, str) else piece["text"]
        for part in parts
        for piece in ([part["text"]] if "text" in part else _pieces(part))
    ]


def _pieces(part: Mapping[str, Any]) -> list[Any]:
    content = part.get("content", part.get("parts"))
    return [content] if isinstance(content, str) else list(content)


PARAMETERS = ["temperature", "max_tokens", "seed", "parallel_tool_calls"]


def heard(text: str, sent: Mapping[str, Any]) -> Failure:
    """The failure that the text is, without what it repeats."""
    return failure(400, text).heard(told(sent))


@given(bodies, st.sampled_from(list(WRITTEN)), st.sampled_from(FRAMES), st.booleans())
def test_nothing_is_certain_from_a_repeated_request(
    sent: dict[str, Any], written: str, frame: Callable[[str], str], tools: bool
) -> None:
    """However a request is repeated, it names no parameter, format, tool or cause: a lower tier is only tried."""
    facts = heard(frame(WRITTEN[written](sent)), sent)
    verdict = judge(facts, "native", proven=False, sent=PARAMETERS, tools=tools)
    assert verdict == StepDown("json_object", certain=False)
    assert judge(facts, "text", proven=False, sent=PARAMETERS, tools=tools) == Fatal(ModelRequestError)


@given(bodies, st.sampled_from(["json", "unicode", "dense", "python", "twice"]), st.data())
def test_nothing_is_certain_from_a_part_of_it(sent: dict[str, Any], written: str, data: st.DataObject) -> None:
    """The same for some of the parameters in another order, cut at the end."""
    names = data.draw(st.permutations(sorted(sent)))
    some = {name: sent[name] for name in names[: data.draw(st.integers(1, len(names)))]}
    echo = WRITTEN[written](some)
    cut = echo[: data.draw(st.integers(len(echo) // 2, len(echo)))]
    # cut in a name, or in a value that is a word, it is no value any more, and nothing of a request either
    cut = re.sub(r"[\\\"']+[\w/.:-]*[\\\"']*\s*:?\s*[\\\"']*[\w./:-]*$", "", cut)
    verdict = judge(heard(f"No: {cut}", sent), "native", proven=False, sent=PARAMETERS)
    assert not isinstance(verdict, Drop | NoTools)
    assert verdict == StepDown("json_object", certain=False)


@given(bodies, st.sampled_from(sorted(FORMAT_REFUSALS)), st.sampled_from(["json", "unicode", "python", "dense"]))
def test_refusal_beside_the_repeated_request_is_still_heard(sent: dict[str, Any], style: str, written: str) -> None:
    """What a provider refuses in its own words is refused, whether or not the whole request follows."""
    answer = FORMAT_REFUSALS[style]
    words = answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
    alone = judge(failure(answer.status, words), "native", proven=False, sent=PARAMETERS)
    text = f"{words} Request: {WRITTEN[written](sent)}"
    beside = judge(failure(answer.status, text).heard(told(sent)), "native", proven=False, sent=PARAMETERS)
    assert beside == alone


@pytest.mark.parametrize("style", FORMAT_REFUSALS)
@pytest.mark.parametrize("tier", ["native", "json_schema", "json_object"])
def test_refusals_without_echo_are_heard_as_they_are(style: str, tier: Any) -> None:
    """Taking out echoes changes no verdict on any wording that is known."""
    answer = FORMAT_REFUSALS[style]
    words = answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
    facts = failure(answer.status, words.replace("{type}", "json_schema"))
    prompt = texts(with_schema([{"role": "user", "content": SAID[0]}], Node))
    plain = judge(facts, tier, proven=False, sent=PARAMETERS)
    assert judge(facts.heard(prompt), tier, proven=False, sent=PARAMETERS) == plain


@pytest.mark.parametrize("name", sorted(TOOL_REFUSALS))
def test_refusals_of_tools_are_heard(name: str) -> None:
    """The same for refused tools."""
    answer = TOOL_REFUSALS[name]
    facts = failure(answer.status, json.dumps(answer.body)).heard([SAID[0]])
    assert judge(facts, "text", proven=True, sent=[], tools=True) == NoTools()


@pytest.mark.parametrize(
    "text",
    [
        "Unsupported value: 'temperature' does not support 0.0 with this model.",
        "max_tokens: unsupported, the maximum is set by the deployment",
        '{"detail": [{"loc": ["body", "temperature"], "msg": "too high", "input": 0.0}]}',
        '{"temperature": ["not supported"]}',
        "gpt-5 doesn't support temperature=0.0. Only temperature=1 is supported.",
    ],
)
def test_refused_parameter_is_heard(text: str) -> None:
    """A parameter that is complained of is dropped, whatever the wording, values included."""
    assert isinstance(judge(heard(text, {}), "native", proven=False, sent=PARAMETERS), Drop)


def test_list_of_all_parameters_blames_none() -> None:
    """An answer that lists what a request may hold refuses none of it."""
    words = "Unknown field 'x'. Known: model, messages, temperature, max_tokens, seed, response_format, tools"
    sent = ["temperature", "max_tokens", "seed"]
    facts = failure(400, words)
    assert judge(facts, "native", proven=False, sent=sent) == StepDown("json_object", certain=False)
    assert judge(facts, "native", proven=False, sent=sent, tools=True) == StepDown("json_object", certain=False)
    assert judge(facts, "text", proven=False, sent=sent) == Fatal(ModelRequestError)
    assert judge(failure(500, words, "InternalServerError"), "native", proven=False, sent=sent) == judge(
        failure(500, "oops", "InternalServerError"), "native", proven=False, sent=sent
    )


def test_cause_is_not_read_in_the_prompt() -> None:
    """Words of the prompt are no cause: an echo of "billing" is not a lack of credit."""
    said = "My insufficient balance worries me, says the billing department of the bank"
    assert failure(400, f"Bad request: {said}").cause is ModelQuotaError
    assert failure(400, f"Bad request: {said}").heard([said]).cause is ModelRequestError


def test_flow_that_is_only_echoed_learns_nothing() -> None:
    """Played against echoes alone, the ladder tries each tier once, raises the first error and has learned nothing."""
    sent = body(SAID[0], "openai", tools=False)
    facts = heard(f"First: {json.dumps(sent)}", sent)
    abilities = Abilities()
    played = play([facts, facts, facts], context(abilities))
    assert played.tiers == ["native", "json_object", "text"]
    assert type(played.error) is ModelRequestError
    assert abilities.dump() == []
    assert abilities.get(KEY).dropped == ()


def test_what_never_went_out_is_not_an_echo() -> None:
    """litellm's own words on a request that it did not send are taken as they are."""
    local = failure(400, "doesn't support (temperature=0.0, seed=1)", "UnsupportedParamsError")
    assert local.heard(["temperature"]) is local
    assert failure(400, "").heard(["x"]).text == ""


# ---------------------------------------------------------------------------------------------------- what is shown


@given(st.text() | st.text("\\\\un0eb9dD8 \nxÄß", max_size=30))
def test_folding_has_two_speeds_and_one_result(text: str) -> None:
    """The fast folding gives what the one with places gives, and every place is where its character came from."""
    slow = fold(text)
    assert " ".join(slow.text.split()) == folded(text)
    assert len(slow.text) == len(slow.starts) == len(slow.ends)
    assert all(begin < end <= len(text) for begin, end in zip(slow.starts, slow.ends, strict=True))
    assert slow.starts == sorted(slow.starts)


SENTENCES = [
    "Invalid value: {} is not allowed in messages.",
    "Content blocked: '{}'",
    '{{"error": {{"message": "Unexpected input {}", "code": "invalid_request_error"}}}}',
    "{} exceeds 8192 tokens",
]
words = st.lists(
    st.text(st.characters(categories=["Ll", "Lu"], max_codepoint=0x24F), min_size=3, max_size=9)
    | st.integers(10, 10**6).map(str),
    min_size=1,
    max_size=30,
)
RESPACED: list[Callable[[list[str]], str]] = [
    " ".join,
    "\n".join,
    "\\n".join,
    "  ".join,
    ", ".join,
    lambda some: " ".join(some).upper(),
    lambda some: " ".join(some).title(),
    lambda some: json.dumps(" ".join(some))[1:-1],
    lambda some: json.dumps(json.dumps(" ".join(some)))[1:-1],
]


def remaining(shown: str) -> set[str]:
    """The words of a text, in lower case."""
    return set(re.findall(r"\w+", folded(shown)))


@given(words, st.data(), st.sampled_from(SENTENCES), st.sampled_from(RESPACED))
def test_no_word_of_the_prompt_is_shown(
    said: list[str], data: st.DataObject, sentence: str, respaced: Callable[[list[str]], str]
) -> None:
    """Be it a single word, in other case, with other spaces, or escaped: no word of the prompt's own is shown."""
    begin = data.draw(st.integers(0, len(said) - 1))
    some = said[begin : data.draw(st.integers(begin + 1, len(said)))]
    shown = without_words(sentence.format(respaced(some)), [" ".join(said)])
    own = {folded(word) for word in some if not is_standard(word)}
    assert not own & (remaining(shown) - remaining(sentence))


@given(words, st.data())
def test_glued_and_cut_words_are_not_shown(said: list[str], data: st.DataObject) -> None:
    """Two words without a space between are recognised from eight letters on, and half of a cut word behind others."""
    said = [word for word in said if not is_standard(word)]
    if len(said) < 2:
        return
    begin = data.draw(st.integers(0, len(said) - 2))
    one, other = said[begin], said[begin + 1]
    if len(folded(one + other)) >= 8:
        shown = without_words(f"Bad input: {one}{other}", [" ".join(said)])
        assert shown == "Bad input: …"
    shown = without_words(f"Bad input: {one} {other[:2]}", [" ".join(said)])
    assert shown == "Bad input: …"
    shown = without_words(f"Bad input: {one[-2:]} {other}", [" ".join(said)])
    assert shown == "Bad input: …"


@pytest.mark.parametrize(
    ("said", "text", "shown"),
    [
        ("my door code is 4711", "invalid: '4711'", "invalid: '…'"),
        ("my door code is 4711", "the DOOR  Code IS", "the …"),
        ("my door code is 4711", "line 4 of 47110", "line 4 of 47110"),
        ("Zoë plays chess", 'got \\"Zo\\u00eb\\"', 'got \\"…\\"'),
        ("I like 😀 cats", "got \\ud83d\\ude00 cats", "got \\ud83d\\ude00 …"),
        ("th\\xe9 noir", "bad TH\\xc9", "bad …"),
        ("tab\\x20here", "tab here", "…"),
        ("我的生日是五月三日", "无效: 生日是", "无效: …"),
        ("The user has no access", "You have no access", "You have no access"),
        ("The user has no access to the model", "user has no access to", "…"),
        ("", "nothing was told", "nothing was told"),
        ("x", "", ""),
    ],
)
def test_what_is_shown(said: str, text: str, shown: str) -> None:
    """Words and copied runs go, the provider's own stay."""
    assert without_words(text, [said]) == shown


def test_standard_sentences_stay_whatever_the_prompt() -> None:
    """Nothing that the known providers say is lost to a prompt that uses each of its words."""
    for answer in [*FORMAT_REFUSALS.values(), *TOOL_REFUSALS.values(), *FAILURES.values()]:
        said = answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
        mixed = re.findall(r"[A-Za-z]+", said)[::-1]
        text = " ".join(said.split())
        lost = set(mixed) - set(re.findall(r"[A-Za-z]+", without_words(text, [" ; ".join(mixed)])))
        names = {"foo", "gemma", "sk", "wro", "got", "amzn", "AI", "ai", "u"}
        said_by_models = {"Sure", "memories", "two", "welcome", "captive", "portal", "doctype"}
        assert lost <= names | said_by_models, text


def test_error_shows_neither_prompt_nor_key() -> None:
    """An error is short, and has no word of the prompt's own and no part of a key."""
    text = "No such user: teapot, key abcdef" + " and on" * 200
    error = to_error(failure(400, text), "m", secrets=["abcdefghijkl"], prompt=["the blue teapot sleeps"])
    assert "teapot" not in str(error)
    assert len(str(error)) < MAX_DETAIL + 100
    cut = to_error(failure(400, f"key {'abcdefghijkl'[:9]}"), "m", secrets=["abcdefghijkl"])
    assert "abcdefghi" not in str(cut)


HOSTILE = [
    "(" * 400_000,
    "([{" * 100_000 + ")]}" * 100_000,
    '"messages": [' * 40_000,
    "\\" * 400_000,
    "\\u00eb" * 60_000,
    "a" * 400_000,
    " " * 400_000,
    '"temperature":' * 30_000,
    "&quot;" * 60_000,
    "temperature=" + "9" * 300_000,
    "生" * 200_000,
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_work_on_hostile_text_is_bounded(text: str) -> None:
    """An answer of any size takes at most three calls a character, to be decided on and to be shown, and that ends."""
    facts, prompt = failure(400, text), ["a" * 100_000, "b c " * 30_000]

    def judged() -> None:
        heard_ = facts.heard(prompt)
        judge(heard_, "native", proven=False, sent=PARAMETERS)
        to_error(heard_, "m", prompt=prompt)

    assert work(judged) < 3 * (len(text) + sum(map(len, prompt)))


def test_reason_at_the_end_of_a_long_answer_is_heard() -> None:
    """Of an answer without bounds both ends are read."""
    assert own_words(f"a{'b ' * 50_000}response_format is not supported", []).endswith(
        "response_format is not supported"
    )


def test_arguments_of_tool_calls_count_as_told() -> None:
    """What a model was told includes what it called tools with, turns before."""
    called = {"id": "c", "type": "function", "function": {"name": "add", "arguments": '{"memory": "plays go"}'}}
    turns = [{"role": "assistant", "content": None, "tool_calls": [called]}, {"role": "tool", "content": "added"}]
    assert texts(turns) == ['{"memory": "plays go"}', "added"]


@pytest.mark.parametrize("width", [8, 16])
def test_common_stretches_are_all_found(width: int) -> None:
    """Looking at a long prompt here and there finds what looking at every place of it would."""
    import random

    from asyncmem.llm.echoes import _common

    dice = random.Random(7)
    for _ in range(300):
        ours = "".join(dice.choices("abc", k=dice.randint(0, 90)))
        theirs = "".join(dice.choices("abc", k=20)) + ours[dice.randint(0, 40) :][: dice.randint(0, 40)]
        both = [{text[i : i + width] for i in range(len(text) - width + 1)} for text in (ours, theirs)]
        assert _common(ours, theirs, width) == both[0] & both[1]


def test_words_repeated_as_in_an_address_are_masked() -> None:
    """What is percent-encoded is the same text, letters beyond ASCII and blanks of every kind included."""
    from urllib.parse import quote

    told = "Großmutter Eulalia\tkeeps\nquinces, 100% of them"
    shown = without_words(f"Bad request: /v1/chat?prompt={quote(told)}", [told])
    for word in ("Eulalia", "quinces", "mutter"):
        assert word not in shown
    assert without_words("only 50% is left", ["something else"]) == "only 50% is left"
