"""How providers, gateways and servers word their refusals: status, body and headers, as data.

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


def openai_error(message: str, param: str | None = None, code: str | None = None, kind: str = "") -> dict[str, object]:
    """An error as OpenAI words it."""
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
        openai_error(
            "Invalid parameter: 'response_format' of type '{type}' is not supported with this model."
            " Learn more about"
            " supported models at the Structured Outputs guide.",
        ),
    ),
    "azure": Answer(
        400,
        openai_error(
            "response_format value as {type} is enabled only for api versions 2024-08-01-preview and later",
            "response_format",
            "BadRequest",
        ),
    ),
    "deepseek": Answer(
        400, openai_error("This response_format type is unavailable now", None, "invalid_request_error")
    ),
    "deepseek422": Answer(
        422,
        openai_error(
            "Failed to deserialize the JSON body into the target type: response_format:"
            " response_format.type `{type}`"
            " is unavailable now at line 1 column 1193"
        ),
    ),
    "groq": Answer(
        400,
        openai_error("This model does not support response format `{type}`. See supported models.", "response_format"),
    ),
    "groq_schema": Answer(
        400,
        openai_error("invalid schema for response format: response_format/json_schema: minItems is not supported"),
    ),
    "groq_generation": Answer(
        400,
        {
            "error": {
                "message": "Failed to generate JSON. Please adjust your prompt. See 'failed_generation' for details.",
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
        400, {"id": "x", **openai_error("response_format {type} is not supported by this model.", "response_format")}
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
    "ollama": Answer(400, openai_error('invalid format: expected "json" or a JSON schema', None, None, "api_error")),
    "litellm_proxy": Answer(
        400,
        openai_error(
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
    "bare": Answer(400, openai_error("Invalid request.")),
    "html": Answer(400, "<html><body><h1>400 Bad Request</h1></body></html>"),
    "empty": Answer(400, ""),
}
"""How a ``response_format`` is refused, by the name of who words it so; ``{type}`` is the refused type."""

TOOL_REFUSALS: Mapping[str, Answer] = {
    "openai": Answer(400, openai_error("This model does not support tools.", "tools")),
    "ollama": Answer(400, openai_error("registry.ollama.ai/library/gemma:latest does not support tools", None, None)),
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
