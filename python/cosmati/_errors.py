# The exceptions of the package.
# SPDX-License-Identifier: Apache-2.0
"""Exceptions."""


class Error(ValueError):
    """The program, an option or an argument is wrong. str() is the whole message; the parts are attributes.

    code: the kind of mistake, as "extra_axis" or "bad_argument" (docs/reference/errors.md lists them).
    what: what is wrong.  hint: what would be legal, or "".  origin: where the cause entered, or "".
    file, line, column: the place in the text or in the Python file of the program; "" and 0 where there is none.
    """

    def __init__(
        self,
        text: str,
        code: str = "bad_argument",
        what: str = "",
        hint: str = "",
        origin: str = "",
        file: str = "",
        line: int = 0,
        column: int = 0,
    ) -> None:
        super().__init__(text, code, what, hint, origin, file, line, column)
        self.code = code
        self.what = what or text
        self.hint = hint
        self.origin = origin
        self.file = file
        self.line = line
        self.column = column

    def __str__(self) -> str:
        return str(self.args[0])


class BackendAbsent(Error, RuntimeError):
    """The backend is not built, or its library or device is missing on this machine."""


class InternalError(RuntimeError):
    """A bug of Cosmati itself. The message names the place."""


# Users know them by the package.
for _class in (Error, BackendAbsent, InternalError):
    _class.__module__ = "cosmati"
