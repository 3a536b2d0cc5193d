"""Every wording of a refusal, on every way through litellm, whatever the provider takes: step, value and calls."""

import pytest

from asyncmem.errors import ModelError
from asyncmem.llm.abilities import TIERS
from asyncmem.testing import FORMAT_REFUSALS, Behaviour, ProviderSimulator
from asyncmem.types import Tier

from ..unit.llm.schemas import Ids
from .paths import OPENAI_PATHS, PATHS, Path, llm_for, sent

pytestmark = pytest.mark.anyio

PROMPT = [{"role": "user", "content": "Which memories matter?"}]
SAID = {"memory_ids": ["3", "1"]}
TAKES: dict[str, tuple[str, ...]] = {
    "all": ("json_schema", "json_object"),
    "schema only": ("json_schema",),
    "object only": ("json_object",),
    "nothing": (),
}
# each provider's own wording on its own path, and every wording on the OpenAI-shaped paths
CASES = [
    (path, style, name)
    for path in PATHS
    for style in (FORMAT_REFUSALS if path in OPENAI_PATHS else [path.dialect])
    for name in TAKES
    # where nothing is refused, the wording plays no part
    if style in ("openai", path.dialect) or path.formats[path.start] not in TAKES[name]
]


def answering(path: Path, style: str, takes: tuple[str, ...]) -> Tier:
    """The step that must answer: the first one, in the order the wording leads to, whose format is taken."""
    tiers = list(TIERS[TIERS.index(path.start) :])
    if style == path.model.partition("/")[0] == "litellm_proxy" and path.formats[path.start] not in takes:
        return "text"  # litellm knows its own proxy's words for "no response_format at all"
    return next(tier for tier in tiers if path.formats.get(tier) is None or path.formats.get(tier) in takes)


@pytest.mark.parametrize(("path", "style", "name"), CASES, ids=[f"{p.model}-{style}-{n}" for p, style, n in CASES])
async def test_right_step_right_value_few_calls(path: Path, style: str, name: str, provider: ProviderSimulator) -> None:
    """The right step answers with the right value, at most one call a step is spent, and one from then on."""
    takes = TAKES[name]
    provider.behaviour = Behaviour(says=SAID, accepts=takes, style=style)
    llm = llm_for(path, provider)
    first = await llm.structured(PROMPT, Ids)
    assert first.value == Ids(memory_ids=["3", "1"])
    assert first.tier == answering(path, style, takes)
    assert first.repairs == 0
    spent = sent(provider)
    assert spent <= TIERS.index(first.tier) - TIERS.index(path.start) + 1
    assert first.usage.calls == spent
    again = await llm.structured(PROMPT, Ids)
    assert (again.tier, again.value) == (first.tier, first.value)
    assert sent(provider) == spent + 1
    assert again.usage.calls == 1


async def test_strict_refused_plain_schema_taken(provider: ProviderSimulator) -> None:
    """A server that refuses strict schemas only gets the plain one."""
    provider.behaviour = Behaviour(says=SAID, strict=False, style="groq_schema")
    done = await llm_for(PATHS[0], provider).structured(PROMPT, Ids)
    assert (done.tier, done.usage.calls) == ("json_schema", 2)
    plain = provider.received[-1].body["response_format"]["json_schema"]
    assert plain == {
        "name": "Ids",
        "schema": {
            "type": "object",
            "properties": {"memory_ids": {"type": "array", "items": {"type": "string"}}},
            "required": ["memory_ids"],
        },
    }


@pytest.mark.parametrize("path", PATHS, ids=[path.model for path in PATHS])
async def test_schema_is_in_the_prompt_at_every_step(path: Path, provider: ProviderSimulator) -> None:
    """The schema and the word JSON reach the provider in words, whatever the step."""
    provider.behaviour = Behaviour(says=SAID, accepts=())
    await llm_for(path, provider).structured(PROMPT, Ids)
    for request in provider.received:
        if not request.path.endswith("/api/show"):
            text = str(request.body)
            assert "JSON schema" in text
            assert '"memory_ids"' in text


async def test_models_that_litellm_knows_to_lack_it_cost_one_call(provider: ProviderSimulator) -> None:
    """For gpt-4 litellm itself refuses the format: nothing is sent for that."""
    provider.behaviour = Behaviour(says=SAID)
    done = await llm_for(Path("openai/gpt-4"), provider).structured(PROMPT, Ids)
    assert (done.tier, done.usage.calls, len(provider.received)) == ("text", 1, 1)


async def test_parameters_a_model_refuses_are_dropped_once(provider: ProviderSimulator) -> None:
    """max_tokens is renamed, temperature dropped, and both stay so for the next request."""
    provider.behaviour = Behaviour(says=SAID, fails=("max_tokens", "temperature"))
    llm = llm_for(PATHS[0], provider)
    done = await llm.structured(PROMPT, Ids, max_tokens=99)
    assert done.usage.calls == 3
    await llm.structured(PROMPT, Ids, max_tokens=99)
    last = provider.received[-1].body
    assert len(provider.received) == 4
    assert last["max_completion_tokens"] == 99
    assert "max_tokens" not in last
    assert "temperature" not in last


async def test_gateway_that_wants_the_word_json(provider: ProviderSimulator) -> None:
    """A gateway that demands the word JSON in the prompt finds it there."""
    provider.behaviour = Behaviour(says=SAID, fails=("json_word",))
    done = await llm_for(PATHS[0], provider).structured(PROMPT, Ids)
    assert done.value == Ids(memory_ids=["3", "1"])


async def test_reference_case_seven(provider: ProviderSimulator) -> None:
    """Native and schema refused, JSON mode taken, a reasoning block and a fence around: one step, remembered."""
    said = '<think>Rows 3 and 1.</think>\n```json\n{"memory_ids": ["3", "3", 1, "42"]}\n```'
    provider.behaviour = Behaviour(says=said, accepts=("json_object",))
    llm = llm_for(PATHS[0], provider)
    done = await llm.structured(PROMPT, Ids)
    assert (done.tier, done.value.memory_ids) == ("json_object", ["3", "3", "1", "42"])
    provider.forget()
    assert (await llm.structured(PROMPT, Ids)).tier == "json_object"
    assert len(provider.received) == 1


@pytest.mark.parametrize("kind", ["wrong_key", "rate_limit", "quota", "forbidden", "slow"])
async def test_other_failures_never_step_down(kind: str, provider: ProviderSimulator) -> None:
    """A wrong key, a rate limit, no quota or a time-out is raised as what it is, and nothing is learned."""
    provider.behaviour = Behaviour(says=SAID, fails=(kind,) * 9)
    llm = llm_for(PATHS[0], provider, retries=0, timeout=0.3)
    with pytest.raises(ModelError):
        await llm.structured(PROMPT, Ids)
    assert [request.wanted.format for request in provider.received] == ["json_schema"]
    assert llm.abilities.dump() == []
