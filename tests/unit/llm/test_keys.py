"""The keys that no error may show, wherever they were given."""

import functools
from typing import Any

import pytest
from pydantic import BaseModel, SecretStr

from asyncmem.errors import ModelAuthenticationError
from asyncmem.llm import LLM
from asyncmem.llm.keys import known_keys
from asyncmem.llm.scrubbing import scrub
from asyncmem.settings import LLMSettings

pytestmark = pytest.mark.anyio

KEY = "b7f3c0d19e8a4c52b6d07aa1f4e95c3d"
PROMPT = [{"role": "user", "content": "hi"}]


class RefusedError(Exception):
    """A provider's own words about a key, by no name that announces one."""

    status_code = 401

    def __init__(self, key: str = KEY) -> None:
        super().__init__(f"{key} may not do this")


class Deployments:
    """What is used of a router, with a key in each deployment."""

    def __init__(self, listed: object) -> None:
        self.model_list = listed

    def get_model_names(self) -> list[str]:
        """One group."""
        return ["fast"]

    async def acompletion(self, model: str, messages: list[Any], **arguments: Any) -> Any:
        """Always refused."""
        raise RefusedError


async def refuse(**arguments: Any) -> Any:
    """A completion function whose provider repeats the key."""
    raise RefusedError


class Params(BaseModel, extra="allow"):
    """Parameters of a deployment, as litellm models them."""

    model: str = "openai/foo"


DEPLOYED = [{"model_name": "fast", "litellm_params": {"model": "openai/foo", "api_key": KEY}}]
MODELS: dict[str, tuple[Any, dict[str, Any]]] = {
    "partial": (functools.partial(refuse, api_key=KEY), {}),
    "partial of a partial": (functools.partial(functools.partial(refuse, azure_ad_token=KEY), seed=1), {}),
    "router": (Deployments(DEPLOYED), {}),
    "router's own models": (Deployments([{"litellm_params": Params.model_validate({"api_key": KEY})}]), {}),
    "router's method": (Deployments(DEPLOYED).acompletion, {"model": "fast"}),
    "partial of it": (functools.partial(Deployments(DEPLOYED).acompletion, model="fast"), {}),
    "headers": (refuse, {"headers": {"Authorization": f"Bearer {KEY}"}}),
    "extra_headers": (refuse, {"extra_headers": {"x-custom": KEY}}),
    "deep in extra": (refuse, {"extra_body": {"auth": [{"value": KEY}]}}),
    "hidden": (refuse, {"client_secret": SecretStr(KEY)}),
    "bytes": (refuse, {"password": KEY.encode()}),
    "vertex_credentials": (refuse, {"vertex_credentials": {"private": KEY}}),
}


@pytest.mark.parametrize("given", MODELS)
async def test_key_is_masked_wherever_it_was_given(given: str) -> None:
    """A key that the provider repeats is not shown, whether it lies in a partial, a router or the settings."""
    model, extra = MODELS[given]
    with pytest.raises(ModelAuthenticationError, match="may not do this") as caught:
        await LLM(model, LLMSettings(extra=extra)).complete(PROMPT)
    assert KEY not in str(caught.value)
    assert KEY[:12] not in str(caught.value)


async def test_key_of_the_environment_is_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    """So is one from a variable whose name says that it is a secret; no variable else is."""
    monkeypatch.setenv("SOME_API_KEY", KEY)
    monkeypatch.setenv("ABCD_TOKEN_2", "second-value-of-mine")
    monkeypatch.setenv("OTHER_SECRET", "on")
    monkeypatch.setenv("LAST_PASSWORD", "completion")
    monkeypatch.setenv("PLAIN_SETTING", "plain-setting-value")
    keys = known_keys(LLMSettings())
    assert {KEY, "second-value-of-mine"} <= set(keys)
    assert not {"on", "completion", "plain-setting-value"} & set(keys)
    with pytest.raises(ModelAuthenticationError) as caught:
        await LLM(refuse).complete(PROMPT)
    assert KEY not in str(caught.value)


def test_what_is_no_secret_is_not_one() -> None:
    """Numbers, plain parameters and structures without end give nothing; a scheme is told from its key."""
    endless: dict[str, Any] = {"model": "gpt-4o", "max_tokens": 3}
    endless["more"] = endless
    before = set(known_keys(LLMSettings()))
    assert set(known_keys(LLMSettings(), functools.partial(refuse, endless=endless))) == before
    found = known_keys(LLMSettings(api_key=SecretStr("a-key"), extra={"headers": {"a": "Bearer abcdef"}}))
    assert found[:2] == ["a-key", "Bearer abcdef"]
    assert "abcdef" in found


ANNOUNCED = [
    f"Incorrect API key provided: {KEY}.",
    f"The API key '{KEY}' is not valid",
    f"invalid token {KEY}",
    f'{{"api_key": "{KEY}"}}',
    f"Access token is invalid: {KEY}",
    f"secret={KEY}",
    f"Invalid credentials ({KEY})",
    f"key provided: {KEY[:4]}********************{KEY[-4:]}",
    f"https://x.test/v1?alt=sse&key={KEY}",
]


@pytest.mark.parametrize("text", ANNOUNCED)
def test_long_word_that_is_announced_as_a_key_is_masked(text: str) -> None:
    """Behind "key", "token" and the like, a long mixed word is masked though nobody knows it."""
    shown = scrub(text)
    assert KEY[:4] not in shown
    assert "***" in shown


@pytest.mark.parametrize(
    "text",
    [
        "You used 123456789 tokens: the limit is 100",
        "max_tokens is too large: 100000",
        "Your key lacks access to openai/gpt-4o-mini-2024-07-18",
        "tokens per minute (TPM): Limit 30000, Used 29000",
        "an API key from https://platform.openai.com/account/api-keys",
    ],
)
def test_what_only_mentions_keys_is_shown(text: str) -> None:
    """A sentence about keys or tokens that holds none stays as it is."""
    assert scrub(text) == text
