"""Errors that a person can act on, and the exit statuses of the command line.

Each error says what is wrong, where, and what to do about it. The command line prints the text and ends with
`exit_status`; it never shows a traceback for one of these.
"""

from __future__ import annotations

from enum import IntEnum


class ExitStatus(IntEnum):
    """What the process tells the shell. Where several apply: 130, 2, 4, 1, 3."""

    DONE = 0
    LIMIT_BREACHED = 1
    BAD_REQUEST = 2
    NOT_PROVEN = 3
    TURNS_FAILED = 4
    CRASHED = 70
    """A fault of voicebench itself. It is told with a traceback, and is none of the others."""
    INTERRUPTED = 130


class VoicebenchError(Exception):
    """A problem told in words: `what` is wrong (and where), and the `remedy`, empty if there is none."""

    exit_status: ExitStatus = ExitStatus.BAD_REQUEST

    def __init__(self, what: str, remedy: str = "") -> None:
        super().__init__(f"{what}\n  {remedy}" if remedy else what)
        self.what = what
        self.remedy = remedy


class BadRequest(VoicebenchError):
    """Usage, configuration or a missing file: nothing has been run yet."""


class MissingExtra(VoicebenchError):
    """A library is needed that belongs to an extra which is not installed."""

    def __init__(self, library: str, extra: str, needed_for: str) -> None:
        super().__init__(
            f"{needed_for} needs the Python package {library}, which is not installed.",
            f"Install it with:  pip install 'voicebench-testbed[{extra}]'",
        )
        self.extra = extra


class MissingKey(VoicebenchError):
    """A hosted service is asked for, but its key is not in the environment."""

    def __init__(self, variable: str, needed_for: str) -> None:
        super().__init__(
            f"{needed_for} needs a key in the environment variable {variable}, which is not set.",
            f"Set it with:  export {variable}=...   (a key never goes into a config or a run folder)",
        )
        self.variable = variable


class AudioProblem(VoicebenchError):
    """An audio file that cannot be read or holds nothing usable: names the file and the reason."""


class ModelFileProblem(VoicebenchError):
    """A model file is missing, cannot be fetched, or is not the one that the catalogue names."""


class RunProblem(VoicebenchError):
    """A run folder that cannot be opened, written or read."""
