"""Several commands in one process, one after the other. Its argument: their arguments, as JSON lists."""

from __future__ import annotations

import json
import sys

from voicebench.__main__ import main

STATUS = "exit status of"

if __name__ == "__main__":
    for arguments in json.loads(sys.argv[1]):
        status = main(arguments)
        sys.stderr.write(f"{STATUS} {arguments[0]}: {status}\n")
