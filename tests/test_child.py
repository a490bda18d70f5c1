"""A child process: it announces itself, ends with its parent, and what goes wrong with it is told."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from tests.processes import gone_within, running
from voicebench import child
from voicebench.errors import RunProblem

STAYS = """
from voicebench.child import announce, end_with_parent
import threading
end_with_parent()
{before}
announce("4711")
{after}
threading.Event().wait()
"""

DEAF = """
import time
from voicebench.child import announce
announce("deaf")
time.sleep(600)
"""


def code(before: str = "", after: str = "") -> list[str]:
    """The arguments of a child that announces 4711 and stays until its parent is gone."""
    return ["-c", STAYS.format(before=before, after=after)]


def test_a_child_says_where_it_listens() -> None:
    """What the child announces is there when `start` returns, and it runs."""
    with child.start(code(), name="a server") as server:
        assert server.detail == "4711"
        assert server.name == "a server"
        assert server.alive
        pid = server.pid
    assert not running(pid)


def test_what_a_library_prints_before_is_passed_over() -> None:
    """Lines on standard output before the announcement, one of them very long, are skipped."""
    before = "print('loading 1 of 2'); print('x' * 100_000); print('almost ready 12', flush=True)"
    with child.start(code(before), name="a server") as server:
        assert server.detail == "4711"


def test_a_child_that_goes_on_printing_is_not_held_up(tmp_path: Path) -> None:
    """A megabyte on standard output after the announcement blocks nothing, and stands in the log."""
    done, log = tmp_path / "done", tmp_path / "child.log"
    after = f"print('y' * 1_000_000, flush=True); open({str(done)!r}, 'w').close()"
    with child.start(code(after=after), name="a server", log=log):
        deadline = time.monotonic() + 10
        while not done.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert done.exists()
    assert log.stat().st_size >= 1_000_000


def test_a_child_gets_what_it_is_given_in_its_environment() -> None:
    """A variable of `env` reaches the child; the parent's own stay."""
    before = (
        "import os; from voicebench.child import announce; announce(os.environ['GIVEN'] + os.environ['PATH'])"
    )
    with child.start(["-c", before + "; input()"], name="x", env={"GIVEN": "a-key "}) as server:
        assert server.detail == f"a-key {os.environ['PATH']}".strip()


def test_stopping_ends_a_child_in_order() -> None:
    """`stop` ends a child that watches its parent, by itself and with status 0, and may be called twice."""
    server = child.start(code(), name="a server")
    server.stop(grace_s=10)
    assert not server.alive
    assert server._process.returncode == 0
    server.stop()


def test_stopping_kills_a_child_that_does_not_listen() -> None:
    """A child that ignores the end of its standard input is killed after the grace."""
    server = child.start(["-c", DEAF], name="a deaf server")
    server.stop(grace_s=0.05)
    assert not server.alive
    assert server._process.returncode == -signal.SIGKILL


def test_a_child_that_dies_at_once_is_told_with_the_end_of_its_log(tmp_path: Path) -> None:
    """The error names the child and shows the last lines that it wrote before it died."""
    log = tmp_path / "child.log"
    script = "import sys\nfor n in range(40): print('line', n, file=sys.stderr)\nsys.exit('no such model')"
    with pytest.raises(RunProblem) as caught:
        child.start(["-c", script], name="The model's server", log=log)
    said = str(caught.value)
    assert said.startswith("The model's server did not start.")
    assert "no such model" in said
    assert "line 39" in said
    assert "line 3\n" not in said
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_a_child_that_dies_without_a_log_is_told_all_the_same() -> None:
    """Without a log the error still names the child."""
    with pytest.raises(RunProblem, match="The server did not start"):
        child.start(["-c", "raise SystemExit(3)"], name="The server")


def test_a_child_that_stays_silent_is_given_up() -> None:
    """A child that never announces itself is killed at the time-out."""
    start = time.monotonic()
    with pytest.raises(RunProblem, match="did not start"):
        child.start(["-c", "import time; time.sleep(600)"], name="A mute server", timeout_s=0.3)
    assert time.monotonic() - start < 10


def test_a_child_ends_with_a_parent_that_is_killed() -> None:
    """`kill -9` of the parent leaves no child two seconds later."""
    driver = textwrap.dedent(
        f"""
        import sys, time
        from voicebench import child
        server = child.start({code()!r}, name="a server")
        print(server.pid, flush=True)
        time.sleep(600)
        """
    )
    with subprocess.Popen([sys.executable, "-c", driver], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert running(pid)
        parent.kill()
    assert gone_within(pid, 2.0)


def test_a_child_that_is_still_loading_ends_with_its_parent() -> None:
    """A parent that is killed before the announcement leaves nothing behind either."""
    driver = textwrap.dedent(
        """
        from voicebench import child
        child.start(["-c", "import os; from voicebench.child import end_with_parent; end_with_parent();"
                     "os.write(2, b'%d\\\\n' % os.getpid()); import time; time.sleep(600)"],
                    name="a slow server", log=__import__("pathlib").Path("child.log"))
        """
    )
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "child.log")
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
        with subprocess.Popen([sys.executable, "-c", driver], cwd=folder, env=environment) as parent:
            deadline = time.monotonic() + 20
            while not (log.exists() and log.read_text().strip()) and time.monotonic() < deadline:
                time.sleep(0.01)
            pid = int(log.read_text())
            parent.kill()
        assert gone_within(pid, 2.0)


def test_ctrl_c_reaches_the_parent_alone() -> None:
    """An interrupt of the terminal's whole group does not end the child: its parent does that in order."""
    with child.start(code(), name="a server") as server:
        assert os.getpgid(server.pid) != os.getpgid(0)
        assert os.getsid(server.pid) == server.pid


def test_a_start_that_is_given_up_ends_at_once() -> None:
    """A child that is still loading when its run is ended is not waited for, and is gone."""
    given_up = threading.Event()
    threading.Timer(0.2, given_up.set).start()
    start = time.monotonic()
    with pytest.raises(RunProblem, match="did not start"):
        child.start(["-c", "import time; time.sleep(600)"], name="A slow server", given_up=given_up)
    assert time.monotonic() - start < 10
