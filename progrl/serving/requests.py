"""What a page may send: forms, limits, and what is said about those that are wrong."""

from typing import Annotated, TypeVar, overload

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator
from starlette.requests import Request

from progrl.dialogue.calls import written_call
from progrl.dialogue.messages import ToolCall
from progrl.serving.dealer import Role
from progrl.serving.games import Limits, Refusal

M = TypeVar("M", bound=BaseModel)
_ARGUMENTS = 32  # most arguments of a call


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    @field_validator("*")
    @classmethod
    def _short(cls, value: object, info: ValidationInfo) -> object:
        most = info.context["message"] if info.context else 0
        texts = [value] if isinstance(value, str) else []
        texts += value.values() if isinstance(value, dict) else []
        if any(len(text) > most for text in texts):
            raise ValueError(f"longer than {most} characters")
        return value


class Start(_Form):
    """A new game; level 0 is any."""

    environment: str
    level: Annotated[int, Field(ge=0, le=5)] = 0
    role: Role
    agent: str = ""


class Said(_Form):
    """A person's turn: words, with which an agent may close; a call; or leaving, as a user."""

    asked: int
    text: str = ""
    close: bool = False
    leave: bool = False
    call: str = ""
    arguments: Annotated[dict[str, str], Field(max_length=_ARGUMENTS)] = {}

    def line(self, role: Role) -> str:
        """The turn as it would be typed at a terminal.

        Raises:
            Refusal: it says nothing, or does what the role cannot.
        """
        text = self.text.strip()
        if role == "user":
            if self.close or self.call:
                raise Refusal(400, "A user calls no tools and does not close.")
            if self.leave:
                return "/quit"
        elif self.leave:
            raise Refusal(400, "An agent does not leave; it closes.")
        elif self.call:
            return f"/call {written_call(ToolCall(self.call, self.arguments))}"
        elif self.close:
            return f"/close {text}".strip()
        if not text:
            raise Refusal(400, "Say something.")
        return text


class Rated(_Form):
    """A rating; nothing is saved unless `save` says so."""

    stars: Annotated[int, Field(ge=1, le=5)]
    words: str = ""
    save: bool = False


async def _body(request: Request, most: int) -> bytes:
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > most:
            raise Refusal(413, f"The request is larger than {most} bytes.")
    return bytes(content)


@overload
async def given(request: Request, form: type[M], limits: Limits) -> M: ...
@overload
async def given(request: Request, form: None, limits: Limits) -> None: ...
async def given(request: Request, form: type[M] | None, limits: Limits) -> M | None:
    """What the request's body says; None where nothing is expected of it.

    Raises:
        Refusal: the body is too large, or not of the form.
    """
    body = await _body(request, limits.body)
    if form is None:
        return None
    try:
        return form.model_validate_json(body, context={"message": limits.message})
    except ValidationError as error:
        wrong = "; ".join(
            ": ".join(filter(None, (".".join(map(str, each["loc"])), each["msg"])))
            for each in error.errors(include_input=False, include_url=False)
        )
        raise Refusal(400, wrong) from None
