"""Models by role, and the shape of the small one that any environment can start from."""

from pydantic import Field, model_validator

from farhorizon.config.base import Table


class MicroConfig(Table):
    """A Llama-shaped model of 0.5 to 5 million parameters with a word-level vocabulary."""

    layers: int = Field(default=2, ge=1)
    width: int = Field(default=128, ge=2)
    """Size of the residual stream."""
    heads: int = Field(default=4, ge=1)
    """Query heads; `width` is a multiple of them."""
    key_value_heads: int = Field(default=2, ge=1)
    """Key and value heads; `heads` is a multiple of them."""
    feed_forward: int = Field(default=4, ge=1)
    """Width of the feed-forward layers, as a multiple of `width`."""
    max_words: int = Field(default=1000, ge=1)
    """Most distinct words the vocabulary may hold; each has an entry with and one without a leading space."""
    context_tokens: int = Field(default=1024, ge=1)
    """Longest context."""
    rope_base: float = Field(default=10_000.0, gt=0)
    """Base of the rotary position encoding."""

    @model_validator(mode="after")
    def _divides(self) -> "MicroConfig":
        if self.width % self.heads or (self.width // self.heads) % 2:
            raise ValueError(f"width = {self.width} is not an even multiple of heads = {self.heads}")
        if self.heads % self.key_value_heads:
            raise ValueError(f"key_value_heads = {self.key_value_heads} does not divide heads = {self.heads}")
        return self


class Models(Table):
    """The `[models]` table. A model is a name of the catalogue, a local Hugging Face directory or a hub id."""

    policy: str = "smollm2-135m-instruct"
    """What is trained; `"micro"` is the common start of the recipe's environment."""
    reference: str | None = None
    """Frozen model that divergence is measured from; None for the policy as it started."""
    micro: MicroConfig = MicroConfig()
    """Shape of the micro model, where `policy = "micro"`."""
