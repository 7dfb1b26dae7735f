"""Tables with a column of encoded images, as Parquet or Arrow files hold them."""

from typing import Any, Protocol


class TablePart(Protocol):
    """Rows of a split, such as one file; a hashable value that identifies its content without reading it."""

    @property
    def place(self) -> str:
        """What messages call it, such as the file's path."""

    @property
    def rows(self) -> int:
        """The number of rows.

        Raises:
            DatasetDamaged: the files cannot be read.
        """

    @property
    def schema(self) -> Any:
        """The pyarrow schema, with the hub's metadata where there are any; raises as `rows`."""

    def values(self, column: str, kind: str) -> list[Any]:
        """Return the values of a column, None for null, as "string" or "int64".

        Raises:
            DatasetDamaged: the files cannot be read, or a value does not fit.
        """

    def all_numbered(self, column: str) -> bool:
        """Whether it is known, from little reading, that each value is a whole number from 0."""

    def first_images(self, column: str, count: int) -> list[bytes]:
        """Return the first encoded images of a column, at most `count`; empty bytes for a missing one."""
