"""Which calls are wanted. Imports no torch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class Selection:
    """Patterns as in a shell; what is empty leaves nothing out."""

    modules: tuple[str, ...] = ()  # paths in the model, and all below them; the model itself by its name
    operators: tuple[str, ...] = ()  # aten::add.Tensor, or parts of it: add, add.Tensor, *conv*
    phases: tuple[str, ...] = ()  # forward, backward, optimizer
    first_step: int = 1
    last_step: int | None = None

    @property
    def has_sites(self) -> bool:
        """Whether it matters where a call is made."""
        return bool(self.modules or self.phases)

    def has_step(self, step: int) -> bool:
        """Whether calls of this step are wanted."""
        return self.first_step <= step and (self.last_step is None or step <= self.last_step)

    def has_operator(self, operator: str) -> bool:
        """Whether calls of aten::add_.Tensor are wanted."""
        if not self.operators:
            return True
        with_overload = operator.partition("::")[2]
        names = (operator, with_overload, with_overload.partition(".")[0])
        return any(fnmatchcase(name, pattern) for pattern in self.operators for name in names)

    def has_site(self, phase: str, model: str, module: str) -> bool:
        """Whether calls from there are wanted."""
        if self.phases and phase not in self.phases:
            return False
        return not self.modules or any(self._is_below(model, module, pattern) for pattern in self.modules)

    @staticmethod
    def _is_below(model: str, module: str, pattern: str) -> bool:
        """Whether the module or one around it matches, with the model's name before it or without."""
        if not model:
            return False
        return any(fnmatchcase(path, pattern) for path in _paths(model, module))

    def describe(self) -> str:
        """In words, for the record's head; "" if it leaves nothing out."""
        parts = [
            f"{name} {_listed(values)}"
            for name, values in (
                ("modules", self.modules),
                ("operators", self.operators),
                ("phases", self.phases),
            )
            if values
        ]
        if self.last_step is not None:
            parts.append(f"steps {self.first_step} to {self.last_step}")
        elif self.first_step > 1:
            parts.append(f"steps from {self.first_step} on")
        return "; ".join(parts)


def _paths(model: str, module: str) -> Iterable[str]:
    yield model
    parts = module.split(".")
    for count in range(1, len(parts) + 1):
        path = ".".join(parts[:count])
        yield path
        yield f"{model}.{path}"


def _listed(values: tuple[str, ...]) -> str:
    return ", ".join(values)
