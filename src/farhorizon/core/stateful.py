"""Whatever carries state across updates says so, so that a resumed run continues exactly (law 7)."""

from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Stateful(Protocol):
    """State as JSON values: what `state_dict` returns, `load_state_dict` restores exactly."""

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: dict[str, Any]) -> None: ...

    def metrics(self) -> dict[str, float]: ...
