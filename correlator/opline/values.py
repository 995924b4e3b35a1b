# SPDX-License-Identifier: MIT
"""Small immutable values with named fields, for modules that every command imports (docs/internals/design.md, "The
start")."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, ClassVar, Self, dataclass_transform

    @dataclass_transform(frozen_default=True)
    class _Checked: ...
else:
    _Checked = object


class Value(_Checked):
    """Fields are annotations, their defaults are the class's: ``class Point(Value): x: int; y: int = 0`` makes
    ``Point(1)`` and ``Point(x=1, y=2)``. Equal if class and fields are; ``vars(point)`` has the fields in order.

    A frozen dataclass and a NamedTuple generate and compile code for each class when their module is imported; here
    nothing happens then.
    """

    _defaults: ClassVar[dict[str, Any]]

    def __init_subclass__(cls) -> None:
        cls._defaults = {name: vars(cls)[name] for name in cls.__annotations__ if name in vars(cls)}

    def __init__(self, *args: Any, **named: Any) -> None:
        kind = type(self)
        fields = kind.__annotations__
        given = dict(zip(fields, args, strict=False), **named)
        if len(given) < len(args) + len(named):
            raise TypeError(f"{kind.__name__}: more values than fields, or one given twice")
        own = vars(self)
        own.update(fields)  # for their order
        own.update(kind._defaults)
        own.update(given)
        if len(own) > len(fields):
            raise TypeError(f"{kind.__name__} has no field {', '.join(given.keys() - fields.keys())}")
        if len(given) < len(fields) and (missing := fields.keys() - given.keys() - kind._defaults.keys()):
            raise TypeError(f"{kind.__name__} needs {', '.join(missing)}")

    def replaced(self, **fields: Any) -> Self:
        """The same but for these fields."""
        return type(self)(**vars(self) | fields)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: {name}")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash(tuple(vars(self).values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"
