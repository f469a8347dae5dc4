"""Errors that speak to a person."""


class UserError(Exception):
    """A mistake the user can mend. The message is one line: what was wrong, where, and what to do.

    The command line prints it without a traceback and exits with status 2.
    """


class Interrupted(Exception):
    """The run was asked to stop (SIGTERM or Ctrl-C); the update in progress is abandoned and replayed on resume."""
