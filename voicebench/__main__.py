"""The command line: `voicebench`, or `python -m voicebench`."""

from __future__ import annotations

import contextlib
import io
import os
import sys

from voicebench.errors import ExitStatus, VoicebenchError


def main(arguments: list[str] | None = None) -> int:
    """Run one command. Returns the exit status; a person's mistake is told in words, without a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # What the terminal's encoding cannot show is shown as a question mark; nothing breaks.
            stream.reconfigure(errors="replace")
    try:
        from voicebench.cli.app import run

        return run(sys.argv[1:] if arguments is None else arguments)
    except VoicebenchError as problem:
        from voicebench.models.names import printable

        # Names of files and modes may come from anywhere: nothing but line feeds may steer the terminal.
        shown = "\n".join(map(printable, str(problem).split("\n")))
        sys.stderr.write(f"voicebench: {shown}\n")
        return int(problem.exit_status)
    except KeyboardInterrupt:
        sys.stderr.write("voicebench: interrupted\n")
        return int(ExitStatus.INTERRUPTED)
    except BrokenPipeError:
        # Whoever read our output has left; there is nobody to tell, also not of what is still to be flushed.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(ExitStatus.BAD_REQUEST)
    except Exception as fault:
        # Python's own status for this is 1, which says that a limit is breached.
        sys.excepthook(type(fault), fault, fault.__traceback__)
        return int(ExitStatus.CRASHED)


def script() -> None:
    """The `voicebench` command of an installation."""
    from voicebench.threads import leave

    leave(main())


if __name__ == "__main__":
    script()
