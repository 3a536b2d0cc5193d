"""How providers, gateways and servers word their refusals and failures: status, body and headers, as data.

Source: the messages quoted in the issue trackers of litellm, vLLM, llama.cpp, LM Studio, SGLang, TGI, Ollama and
OpenRouter, and in the providers' own documentation of their errors.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer.

    Attributes:
        status: HTTP status.
        body: its body; text is sent as it is, anything else as JSON.
        headers: besides content type and length.
    """

    status: int
    body: object
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


def _openai(message: str, param: str | None = None, code: str | None = None, kind: str = "") -> dict[str, object]:
    return {"error": {"message": message, "type": kind or "invalid_request_error", "param": param, "code": code}}


def _flat(message: object, kind: str = "BadRequestError", code: int | None = 400) -> dict[str, object]:
    return {"object": "error", "message": message, "type": kind, "param": None, "code": code}


_MISTRAL_DETAIL = {
    "detail": [
        {
            "type": "literal_error",
            "loc": ["body", "response_format", "type"],
            "msg": "Input should be 'text' or 'json_object'",
            "input": "{type}",
        }
    ]
}

FORMAT_REFUSALS: Mapping[str, Answer] = {
    "openai": Answer(
        400,
        _openai(
            "Invalid parameter: 'response_format' of type '{type}' is not supported with this model."
            " Learn more about"
            " supported models at the Structured Outputs guide.",
        ),
    ),
    "azure": Answer(
        400,
        _openai(
            "response_format value as {type} is enabled only for api versions 2024-08-01-preview and later",
            "response_format",
            "BadRequest",
        ),
    ),
    "deepseek": Answer(
        400, _openai("This response_format type is unavailable now", None, "invalid_request_error")
    ),
    "deepseek422": Answer(
        422,
        _openai(
            "Failed to deserialize the JSON body into the target type: response_format:"
            " response_format.type `{type}`"
            " is unavailable now at line 1 column 1193"
        ),
    ),
    "groq": Answer(
        400,
        _openai("This model does not support response format `{type}`. See supported models.", "response_format"),
    ),
    "groq_schema": Answer(
        400,
        _openai("invalid schema for response format: response_format/json_schema: minItems is not supported"),
    ),
    "groq_generation": Answer(
        400,
        {
            "error": {
                "message": "Failed to generate JSON. Please adjust your prompt. See 'failed_generation'"
                " for details.",
                "type": "invalid_request_error",
                "code": "json_validate_failed",
                "failed_generation": "Sure! The memories are one and two.",
            }
        },
    ),
    "xai": Answer(
        400,
        {
            "code": "Client specified an invalid argument",
            "error": "The response_format parameter is unsupported at the moment. Leave it unset.",
        },
    ),
    "lmstudio": Answer(400, {"error": "'response_format.type' must be 'json_schema' or 'text'"}),
    "llamacpp": Answer(
        500,
        {
            "error": {
                "code": 500,
                "message": 'response_format type must be one of "text" or "json_object", but got: {type}',
                "type": "server_error",
            }
        },
    ),
    "vllm": Answer(400, _flat("The provided JSON schema contains features not supported by xgrammar.")),
    "sglang": Answer(400, _flat("Failed to parse the grammar: unsupported JSON schema", "BadRequest")),
    "mistral": Answer(422, _flat(_MISTRAL_DETAIL, "invalid_request_error", None)),
    "tgi": Answer(
        422,
        "Failed to deserialize the JSON body into the target type: response_format: unknown variant"
        " `{type}`, expected"
        " one of `json`, `json_object`, `regex` at line 1 column 230",
    ),
    "together": Answer(
        400, {"id": "x", **_openai("response_format {type} is not supported by this model.", "response_format")}
    ),
    "fireworks": Answer(
        400,
        {
            "error": {
                "object": "error",
                "type": "invalid_request_error",
                "code": "invalid_request_error",
                "message": "Extra inputs are not permitted, field: 'response_format', value: {'type': '{type}'}",
            }
        },
    ),
    "openrouter": Answer(
        404,
        {
            "error": {
                "message": "No endpoints found that can handle the requested parameters. To learn more"
                " about provider"
                " routing, visit the documentation.",
                "code": 404,
            }
        },
    ),
    "ollama": Answer(400, _openai('invalid format: expected "json" or a JSON schema', None, None, "api_error")),
    "litellm_proxy": Answer(
        400,
        _openai(
            "litellm.UnsupportedParamsError: openai does not support parameters: ['response_format'],"
            " for model=foo."
            " To drop these, set `litellm.drop_params=True`",
            "None",
            "400",
            "None",
        ),
    ),
    "gemini": Answer(
        400,
        {
            "error": {
                "code": 400,
                "message": 'Invalid JSON payload received. Unknown name "responseJsonSchema" at'
                " 'generation_config':"
                " Cannot find field.",
                "status": "INVALID_ARGUMENT",
            }
        },
    ),
    "bedrock": Answer(
        400,
        {"message": "This model doesn't support the toolConfig.toolChoice.any field. Remove it and try again."},
        {"x-amzn-errortype": "ValidationException"},
    ),
    "anthropic": Answer(
        400,
        {
            "type": "error",
            "error": {"type": "invalid_request_error", "message": "output_format: Extra inputs are not permitted"},
        },
    ),
    "plain": Answer(400, "Bad Request"),
    "bare": Answer(400, _openai("Invalid request.")),
    "html": Answer(400, "<html><body><h1>400 Bad Request</h1></body></html>"),
    "empty": Answer(400, ""),
}
"""How a ``response_format`` is refused, by the name of who words it so; ``{type}`` is the refused type."""

TOOL_REFUSALS: Mapping[str, Answer] = {
    "openai": Answer(400, _openai("This model does not support tools.", "tools")),
    "ollama": Answer(400, _openai("registry.ollama.ai/library/gemma:latest does not support tools", None, None)),
    "vllm": Answer(
        400, _flat('"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set')
    ),
    "openrouter": Answer(
        404, {"error": {"message": "No endpoints found that support tool use. To learn more, visit…", "code": 404}}
    ),
    "anthropic": Answer(
        400,
        {
            "type": "error",
            "error": {"type": "invalid_request_error", "message": "tools: this model does not support tool use"},
        },
    ),
    "bedrock": Answer(
        400,
        {"message": "The model returned the following errors: This model doesn't support tool use."},
        {"x-amzn-errortype": "ValidationException"},
    ),
}
"""How ``tools`` are refused."""

_WAIT = {"retry-after": "{retry_after}"}

FAILURES: Mapping[str, Answer] = {
    "rate_limit": Answer(
        429, _openai("Rate limit reached for requests", None, "rate_limit_exceeded", "requests"), _WAIT
    ),
    "quota": Answer(
        429,
        _openai(
            "You exceeded your current quota, please check your plan and billing details.",
            None,
            "insufficient_quota",
            "insufficient_quota",
        ),
    ),
    "server_error": Answer(
        500,
        _openai("The server had an error while processing your request. Sorry about that!", kind="server_error"),
    ),
    "overloaded": Answer(
        503,
        _openai("The engine is currently overloaded, please try again later", kind="server_error"),
        _WAIT,
    ),
    "overloaded529": Answer(
        529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    ),
    "bad_gateway": Answer(502, "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"),
    "wrong_key": Answer(401, _openai("Incorrect API key provided: sk-wro*****3456.", None, "invalid_api_key")),
    "key_echo": Answer(401, _openai("Invalid API key: {key}", None, "invalid_api_key")),
    "forbidden": Answer(403, _openai("Project does not have access to this model")),
    "no_credit": Answer(402, _openai("Insufficient Balance", None, "insufficient_balance")),
    "no_model": Answer(
        404,
        _openai("The model `foo` does not exist or you do not have access to it.", None, "model_not_found"),
    ),
    "too_long": Answer(
        400,
        _openai(
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 90210 tokens."
            " Please reduce the length of the messages.",
            "messages",
            "context_length_exceeded",
        ),
    ),
    "policy": Answer(
        400,
        _openai(
            "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
            "prompt",
            "content_filter",
        ),
    ),
    "max_tokens": Answer(
        400,
        _openai(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'"
            " instead.",
            "max_tokens",
            "unsupported_parameter",
        ),
    ),
    "temperature": Answer(
        400,
        _openai(
            "Unsupported value: 'temperature' does not support 0.0 with this model. Only the default (1) value is"
            " supported.",
            "temperature",
            "unsupported_value",
        ),
    ),
    "json_word": Answer(
        400,
        _openai(
            "'messages' must contain the word 'json' in some form, to use 'response_format' of type"
            " 'json_object'.",
            "messages",
        ),
    ),
    "prompt_echo": Answer(400, _openai("Your request could not be processed: {prompt}")),
    "garbage": Answer(200, "<!doctype html><title>welcome to the captive portal</title>"),
    "no_choices": Answer(
        200, {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": list[object]()}
    ),
}
"""What else goes wrong, by name. Besides these, ``"drop"`` closes the connection, ``"half"`` does so in the middle
of the answer, and ``"slow"`` never answers."""


def fill(answer: Answer, values: Mapping[str, str]) -> Answer:
    """The answer with its placeholders replaced; a header whose value is empty is left out."""

    def filled(text: str) -> str:
        for name, value in values.items():
            text = text.replace("{" + name + "}", value)
        return text

    if isinstance(answer.body, str):
        body: object = filled(answer.body)
    else:
        escaped = {name: json.dumps(value)[1:-1] for name, value in values.items()}
        text = json.dumps(answer.body)
        for name, value in escaped.items():
            text = text.replace("{" + name + "}", value)
        body = json.loads(text)
    headers = {name: filled(value) for name, value in answer.headers.items()}
    return Answer(answer.status, body, {name: value for name, value in headers.items() if value})
