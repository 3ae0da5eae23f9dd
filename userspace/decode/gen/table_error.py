# SPDX-License-Identifier: Apache-2.0
"""The one error of everything that reads decode/tables."""


class TableError(Exception):
    """A table line that does not follow the rules; its text begins with file:line."""
