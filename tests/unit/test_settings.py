"""Settings: frozen, checked, silent about keys."""

import math
from datetime import timedelta
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from asyncmem import ConfigurationError, LLMSettings, MemoryManager, Settings


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"colour": 1}, "colour"),
        ({"collection_prefix": "$x"}, "collection_prefix"),
        ({"collection_prefix": "x" * 65}, "collection_prefix"),
        ({"retention": timedelta(days=-1)}, "retention"),
        ({"history_limit": 0}, "history_limit"),
        ({"open_timeout": timedelta(0)}, "open_timeout"),
        ({"concurrency": 0}, "concurrency"),
        ({"clock": 5}, "clock"),
        ({"create_indexes": "no"}, "create_indexes"),
        ({"create_indexes": 1}, "create_indexes"),
        ({"concurrency": True}, "concurrency"),
        ({"concurrency": "8"}, "concurrency"),
        ({"history_limit": 2.0}, "history_limit"),
        ({"open_timeout": 5}, "open_timeout"),
        ({"close_timeout": timedelta(seconds=-1)}, "close_timeout"),
        ({"search_cache": -1}, "search_cache"),
        ({"context_similarity": math.nan}, "context_similarity"),
    ],
)
def test_unusable_settings_are_named(options: dict[str, Any], name: str) -> None:
    """An unknown option or a value out of range raises an error that names it."""
    with pytest.raises(ConfigurationError, match=name):
        Settings(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"tier": "xml"},
        {"temperature": 3},
        {"temperature": math.nan},
        {"timeout": 0},
        {"timeout": math.inf},
        {"deadline": math.nan},
        {"deadline": -1},
        {"seed": True},
        {"max_tokens": "9"},
        {"retries": -1},
        {"concurrency": 1.5},
        {"tools": "no"},
        {"tools": 0},
        {"retry": 1},
    ],
)
def test_unusable_model_settings_are_named(options: dict[str, Any]) -> None:
    """The same for how models are called."""
    with pytest.raises(ConfigurationError, match=next(iter(options))):
        LLMSettings(**options)


@pytest.mark.parametrize("name", ["add_memories", "update_memories", "delete_memories", "clear_memories"])
@pytest.mark.parametrize("flag", ["no", "", 0, 1, None, []])
def test_flags_are_true_or_false(name: str, flag: Any) -> None:
    """What is no bool, truthy or not, is no flag: the error names the option."""
    options: dict[str, Any] = {name: flag}
    with pytest.raises(ConfigurationError, match=f"{name} must be True or False"):
        MemoryManager(**options)


def test_keys_are_not_shown() -> None:
    """No key stands in a repr or an error."""
    settings = LLMSettings(api_key="sk-very-secret", extra={"extra_headers": {"x-key": "hush"}})
    assert "secret" not in repr(settings)
    assert "hush" not in repr(settings)
    with pytest.raises(ConfigurationError) as caught:
        LLMSettings(api_key={"key": "sk-very-secret"})  # type: ignore[arg-type]
    assert "secret" not in str(caught.value)


def test_a_key_is_text_or_a_secret() -> None:
    """Either way it is held as a secret, which a type checker knows."""
    for settings in (LLMSettings(api_key="sk-x"), LLMSettings(api_key=SecretStr("sk-x"))):
        assert isinstance(settings.api_key, SecretStr)
        assert settings.api_key.get_secret_value() == "sk-x"
    assert LLMSettings(api_key=None).api_key is None


def test_settings_are_frozen() -> None:
    """A setting can't be changed behind a manager's back."""
    with pytest.raises(ValidationError, match="frozen"):
        Settings().concurrency = 5  # type: ignore[misc]


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("api_key", "LLMSettings(api_key=...)"),
        ("api_base", "LLMSettings(api_base=...)"),
        ("base_url", "LLMSettings(api_base=...)"),
        ("timeout", "LLMSettings(timeout=...)"),
        ("request_timeout", "LLMSettings(timeout=...)"),
        ("temperature", "LLMSettings(temperature=...)"),
        ("seed", "LLMSettings(seed=...)"),
        ("max_tokens", "LLMSettings(max_tokens=...)"),
        ("max_completion_tokens", "LLMSettings(max_tokens=...)"),
        ("num_retries", "LLMSettings(retries=...)"),
        ("max_retries", "LLMSettings(retries=...)"),
        ("n", "one reply is read"),
        ("stream", "stream_tools()"),
        ("response_format", "LLMSettings(tier=...)"),
        ("enable_json_schema_validation", "validated by asyncmem"),
        ("tools", "Agent(tools=...)"),
        ("tool_choice", "LLMSettings(tools=False)"),
        *((name, "with each request") for name in ("messages", "input", "query", "documents", "return_documents")),
    ],
)
def test_what_asyncmem_passes_itself_is_no_extra(name: str, instead: str) -> None:
    """The error names the key and the setting to use, and shows no value."""
    with pytest.raises(ConfigurationError) as caught:
        LLMSettings(extra={"top_p": 0.5, name: "sk-very-secret"})
    assert f"extra: {name} can't be passed here: " in str(caught.value)
    assert instead in str(caught.value)
    assert "secret" not in str(caught.value)


def test_what_providers_want_besides_is_an_extra() -> None:
    """Headers, versions, a router's group, how a stream is told, and parameters that asyncmem has no setting for."""
    given = {
        "model": "fast",
        "extra_headers": {"x": "y"},
        "api_version": "2024-06-01",
        "stream_options": {"include_usage": True},
        "top_p": 0.5,
        "reasoning_effort": "low",
        "parallel_tool_calls": False,
        "metadata": {"a": 1},
        "user": "lin",
    }
    assert LLMSettings(extra=given).extra == given
