"""The tools that a learning machine gives to an agent, by its modes: a task about memories, fields of the profile."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import GenericAlias
from typing import Annotated, Any, ClassVar, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, create_model

from ..errors import InvalidInputError
from ..guards import looks_like_instructions
from ..llm import Tool
from ..profile_values import UserProfile
from ..tool_answers import done, not_done
from ..tool_arguments import Misread, read_arguments
from .merging import shown
from .profile import UserProfileStore

PROFILE_TOOL = "update_profile"
_CAUSE = "tool"
_NOTHING = "Nothing was changed."
_DESCRIPTION = (
    "Set or unset fields of the user's profile, when the user says something about himself or herself that belongs"
    " there. Pass only what changes; a list with all that still holds."
)


class _UpdateProfile(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", hide_input_in_errors=True)


@dataclass(frozen=True, slots=True)
class LearningTools:
    """Tools of one user's learning machine; none in modes that give none.

    Attributes:
        chosen: the tools.
    """

    chosen: tuple[Tool[Any], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The tools that there are."""
        return tuple(tool.name for tool in self.chosen)

    @property
    def specs(self) -> list[dict[str, Any]]:
        """The tools in OpenAI's shape, as ``tools=`` of a chat request takes them."""
        return [tool.spec() for tool in self.chosen]

    def tools(self) -> list[Tool[Any]]:
        """The tools as ``LLM.run_tools`` takes them."""
        return list(self.chosen)

    async def call(self, name: str, arguments: object = None) -> str:
        """Carry out one call of a model; what the model is to be told, as ``MemoryTools.call`` says it.

        Args:
            name: the tool's, as the model wrote it.
            arguments: as the model wrote them: JSON text, or the object that it stands for.

        Raises:
            StoreError: the database could not do it.
            ManagerClosedError: the manager was closed.
            ModelError: the manager's model could not be asked.
        """
        tool = next((tool for tool in self.chosen if tool.name == name), None)
        if tool is None:
            known = ", ".join(self.names) or "none"
            return not_done(f"There is no tool of that name here. {_NOTHING} There are: {known}.")
        schema: type[BaseModel] = tool.arguments
        try:
            read = read_arguments(arguments, schema)
        except Misread as problem:
            return not_done(f"The arguments of {name} can't be used: {problem}. {_NOTHING} Call it again.")
        run: Callable[[Any], Awaitable[str]] = tool.run
        return await run(read)


def profile_tool(profiles: UserProfileStore[Any], schema: type[UserProfile], user_id: str) -> Tool[Any]:
    """The tool ``update_profile`` on one user's profile: typed by its schema, and validated as a whole.

    Args:
        profiles: writes the profile.
        schema: its fields.
        user_id: whose. The tool takes no user, and reaches no other one.
    """
    unset = _unset_name(schema)

    async def run(arguments: BaseModel) -> str:
        given = {name: getattr(arguments, name) for name in arguments.model_fields_set}
        gone = cast("list[str]", given.pop(unset, None) or [])
        fields = {name: value for name, value in given.items() if value is not None}
        if any(map(looks_like_instructions, _texts(arguments))):
            return not_done(f"A value looks like instructions to a model. {_NOTHING}")
        if not fields and not gone:
            return not_done(f"No field was passed. {_NOTHING}")
        try:
            profile, changed = await profiles.change_fields(user_id, fields, gone, _CAUSE)
        except InvalidInputError as error:
            return not_done(f"{error}. {_NOTHING} Call {PROFILE_TOOL} again with what fits.")
        told = profile.model_dump(mode="json", include={*fields, *gone})
        text = "Changed." if changed else "The profile says this already: nothing was changed."
        return done(text, fields={name: value if value is None else shown(value) for name, value in told.items()})

    return Tool(PROFILE_TOOL, _DESCRIPTION, _arguments(schema, unset), run)


def _arguments(schema: type[UserProfile], unset: str) -> type[BaseModel]:
    """Every field of the schema, each of which may be left out, and the names of those to be unset."""
    fields: dict[str, Any] = {}
    for name, field in schema.model_fields.items():
        kind: Any = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
        fields[name] = (kind | None, Field(default=None, description=field.description))
    described = "Names of fields that the user takes back."
    names: Any = Literal[tuple(schema.model_fields)]
    listed: Any = GenericAlias(list, (names,))
    fields[unset] = (listed | None, Field(default=None, max_length=64, description=described))
    return create_model("UpdateProfile", __base__=_UpdateProfile, **fields)


def _unset_name(schema: type[UserProfile]) -> str:
    name = "unset"
    while name in schema.model_fields:
        name += "_fields"
    return name


def _texts(arguments: BaseModel) -> list[str]:
    return [shown(value) for value in arguments.model_dump(mode="json", exclude_unset=True).values()]
