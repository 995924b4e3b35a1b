# SPDX-License-Identifier: MIT
"""The door to packages that an installation may lack: each is imported here, and one line says how to get it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from opline.errors import OplineError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd
    import polars as pl
    import pyarrow as pa


#: Packages of extras, by the name of the module.
EXTRAS = {"dask": "dask", "distributed": "dask", "matplotlib": "plot", "networkx": "graph", "pyarrow": "arrow"}


def missing_extra(error: Exception) -> str | None:
    """What to do where the package of an extra is missing, in a line; None of other errors."""
    package = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    if package not in EXTRAS:
        return None
    return f"this needs the Python package {package}: pip install 'opline[{EXTRAS[package]}]'"


@contextmanager
def with_extras() -> Iterator[None]:
    """Raises OplineError where the package of an extra is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (line := missing_extra(error)) is None:
            raise
        raise OplineError(line) from error


def _missing(package: str, what: str) -> OplineError:
    return OplineError(f"{what} needs the Python package {package}: pip install {package}")


def pyarrow() -> Any:
    """The package. Raises OplineError."""
    with with_extras():
        import pyarrow
    return pyarrow


def frame(found: pa.Table) -> pd.DataFrame:
    """A pandas.DataFrame, whose integers stay integers where values are unknown (Int64). Raises OplineError."""
    try:
        import pandas
    except ImportError as error:
        raise _missing("pandas", "df()") from error
    import pyarrow as pa

    kinds = {
        pa.int64(): pandas.Int64Dtype(), pa.int32(): pandas.Int32Dtype(), pa.int16(): pandas.Int16Dtype(),
        pa.int8(): pandas.Int8Dtype(), pa.uint64(): pandas.UInt64Dtype(), pa.uint32(): pandas.UInt32Dtype(),
        pa.uint16(): pandas.UInt16Dtype(), pa.uint8(): pandas.UInt8Dtype(), pa.bool_(): pandas.BooleanDtype(),
    }  # fmt: skip
    table: pd.DataFrame = found.to_pandas(types_mapper=kinds.get)
    return table


def polars_frame(found: pa.Table) -> pl.DataFrame:
    """A polars.DataFrame. Raises OplineError."""
    try:
        import polars
    except ImportError as error:
        raise _missing("polars", "pl()") from error
    table = polars.from_arrow(found)
    assert isinstance(table, polars.DataFrame)  # of a table, not of one column
    return table
