"""What a profile's schema may be."""

from typing import Any

import pytest
from pydantic import Field, create_model

from asyncmem import ConfigurationError, UserProfile, UserProfileConfig


class Needs(UserProfile):
    """A field without a default."""

    email: str


class Aliased(UserProfile):
    """A field that is called otherwise."""

    email: str | None = Field(default=None, alias="e-mail")


class Callables(UserProfile):
    """A field that no JSON schema can say."""

    hook: type[Any] | None = None


MANY: Any = create_model("Many", __base__=UserProfile, **{f"f{i}": (int, 0) for i in range(70)})  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"schema": dict}, "UserProfile or a subclass"),
        ({"schema": "UserProfile"}, "UserProfile or a subclass"),
        ({"schema": Needs}, "Needs.email has no default"),
        ({"schema": Aliased}, "Aliased.email has an alias"),
        ({"schema": Callables}, "no JSON schema"),
        ({"schema": MANY}, "more than 64 fields"),
        ({"name": "x" * 300}, "name needs 1 to 256"),
        ({"instructions": 5}, "instructions must be"),
        ({"max_tokens": "many"}, "max_tokens must be"),
        ({"max_tokens": True}, "max_tokens must be"),
    ],
)
def test_options_are_checked(options: dict[str, Any], said: str) -> None:
    """A schema that could not be stored or begun empty is refused when it is configured."""
    with pytest.raises(ConfigurationError, match=said):
        UserProfileConfig(**options)


def test_the_schema_names_its_profiles() -> None:
    """Profiles are stored under the schema's name, or the one that is given."""
    assert UserProfileConfig().stored_as == "UserProfile"
    assert UserProfileConfig(name="person").stored_as == "person"


def test_the_schema_may_be_named_as_a_type_argument() -> None:
    """It changes nothing of what there is."""
    assert UserProfileConfig[UserProfile](name="person") == UserProfileConfig(name="person")
