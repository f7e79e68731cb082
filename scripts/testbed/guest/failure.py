# SPDX-License-Identifier: GPL-2.0
"""Exit statuses that are the runner's own, and the exceptions that carry them."""

NO_STATUS = 121
DEVICE_DIED = 122
SPLAT = 123
DEADLINE = 124
SETUP = 125


class Failure(Exception):
    """Something that ends the run: an exit status and what to tell the person."""

    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status = status


class SetupError(Failure):
    """The guest cannot be set up as asked."""

    def __init__(self, message: str):
        super().__init__(SETUP, message)
