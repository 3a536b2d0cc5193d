"""Which database and model a command uses."""

import pytest

from asyncmem import ConfigurationError
from asyncmem.interfaces.choice import KEYS, choose_db, choose_model, llm_settings, without_password


def test_db_is_the_option_else_the_environment_else_embedded() -> None:
    """--db wins over ASYNCMEM_DB, and the embedded server is what is left."""
    assert choose_db("mongodb://a/b", {"ASYNCMEM_DB": "mongodb://c/d"}) == "mongodb://a/b"
    assert choose_db(None, {"ASYNCMEM_DB": "mongodb://c/d"}) == "mongodb://c/d"
    assert choose_db(None, {}) == "embedded"


def test_model_is_the_option_else_the_environment_else_by_key() -> None:
    """--model wins over ASYNCMEM_MODEL, which wins over the provider whose key is there."""
    both = {"ASYNCMEM_MODEL": "ollama_chat/x", "ANTHROPIC_API_KEY": "k"}
    assert choose_model("openai/y", both) == "openai/y"
    assert choose_model(None, both) == "ollama_chat/x"
    for key, model in KEYS.items():
        assert choose_model(None, {key: "k"}) == model
    assert choose_model(None, {"OPENAI_API_KEY": "", "XAI_API_KEY": "k"}) == KEYS["XAI_API_KEY"]


def test_without_a_model_every_choice_is_shown() -> None:
    """The error names the variable, Ollama, a server of one's own, and the demo's own model."""
    with pytest.raises(ConfigurationError) as caught:
        choose_model(None, {})
    for choice in ("ASYNCMEM_MODEL", "ollama", "ASYNCMEM_API_BASE", "nox -s demo"):
        assert choice in str(caught.value)


def test_server_and_key_come_from_the_environment() -> None:
    """ASYNCMEM_API_BASE and ASYNCMEM_API_KEY are used where they are set."""
    settings = llm_settings({"ASYNCMEM_API_BASE": "http://127.0.0.1:1/v1", "ASYNCMEM_API_KEY": "k"})
    assert settings.api_base == "http://127.0.0.1:1/v1"
    assert settings.api_key is not None
    assert settings.api_key.get_secret_value() == "k"
    assert llm_settings({}).api_base is None


def test_a_database_is_shown_without_its_password() -> None:
    """User, password and options are left out."""
    assert without_password("mongodb://joe:hunter2@host:1/app?authSource=admin") == "mongodb://host:1/app"
    assert without_password("embedded") == "embedded"
