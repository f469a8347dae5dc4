"""Messages of a conversation, in parts."""

from dataclasses import dataclass
from typing import Literal

from farhorizon.core.values import Json


@dataclass(frozen=True)
class TextPart:
    """Plain text."""

    text: str


@dataclass(frozen=True)
class ImagePart:
    """An image stored under its hash."""

    sha256: str
    """Name of the file under `blobs/`."""
    media_type: str = "image/png"
    """MIME type."""


@dataclass(frozen=True)
class ToolCallPart:
    """A call the model asked for."""

    id: str
    """Pairs the call with its result."""
    name: str
    """Tool to call."""
    arguments: dict[str, Json]
    """Parsed arguments."""


@dataclass(frozen=True)
class ToolResultPart:
    """What a tool returned."""

    id: str
    """The call answered."""
    content: str
    """Text shown to the model."""


Part = TextPart | ImagePart | ToolCallPart | ToolResultPart


@dataclass(frozen=True)
class Message:
    """One message of a conversation."""

    role: Literal["system", "user", "assistant", "tool"]
    """Who speaks."""
    parts: tuple[Part, ...]
    """Content in order."""

    @classmethod
    def text(cls, role: Literal["system", "user", "assistant", "tool"], text: str) -> "Message":
        """A message of one text part."""
        return cls(role, (TextPart(text),))
