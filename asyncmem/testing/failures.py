"""What else goes wrong at a provider besides its refusals, as data."""

from collections.abc import Mapping

from .refusals import Answer, openai_error

_WAIT = {"retry-after": "{retry_after}"}

FAILURES: Mapping[str, Answer] = {
    "rate_limit": Answer(
        429, openai_error("Rate limit reached for requests", None, "rate_limit_exceeded", "requests"), _WAIT
    ),
    "quota": Answer(
        429,
        openai_error(
            "You exceeded your current quota, please check your plan and billing details.",
            None,
            "insufficient_quota",
            "insufficient_quota",
        ),
    ),
    "server_error": Answer(
        500,
        openai_error("The server had an error while processing your request. Sorry about that!", kind="server_error"),
    ),
    "overloaded": Answer(
        503,
        openai_error("The engine is currently overloaded, please try again later", kind="server_error"),
        _WAIT,
    ),
    "overloaded529": Answer(529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
    "bad_gateway": Answer(502, "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"),
    "wrong_key": Answer(401, openai_error("Incorrect API key provided: sk-wro*****3456.", None, "invalid_api_key")),
    "key_echo": Answer(401, openai_error("Invalid API key: {key}", None, "invalid_api_key")),
    "forbidden": Answer(403, openai_error("Project does not have access to this model")),
    "no_credit": Answer(402, openai_error("Insufficient Balance", None, "insufficient_balance")),
    "no_model": Answer(
        404,
        openai_error("The model `foo` does not exist or you do not have access to it.", None, "model_not_found"),
    ),
    "too_long": Answer(
        400,
        openai_error(
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 90210 tokens."
            " Please reduce the length of the messages.",
            "messages",
            "context_length_exceeded",
        ),
    ),
    "policy": Answer(
        400,
        openai_error(
            "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
            "prompt",
            "content_filter",
        ),
    ),
    "max_tokens": Answer(
        400,
        openai_error(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'"
            " instead.",
            "max_tokens",
            "unsupported_parameter",
        ),
    ),
    "too_many_tokens": Answer(
        400, openai_error("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", None, "invalid_value")
    ),
    "temperature": Answer(
        400,
        openai_error(
            "Unsupported value: 'temperature' does not support 0.0 with this model. Only the default (1) value is"
            " supported.",
            "temperature",
            "unsupported_value",
        ),
    ),
    "json_word": Answer(
        400,
        openai_error(
            "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.",
            "messages",
        ),
    ),
    "prompt_echo": Answer(400, openai_error("Your request could not be processed: {prompt}")),
    "garbage": Answer(200, "<!doctype html><title>welcome to the captive portal</title>"),
    "no_choices": Answer(
        200, {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": list[object]()}
    ),
    "no_message": Answer(200, {"id": "x", "choices": [{"index": 0, "message": None, "finish_reason": "stop"}]}),
}
"""What else goes wrong, by name. Besides these, ``"drop"`` closes the connection, ``"half"`` does so in the middle
of the answer, and ``"slow"`` never answers."""
