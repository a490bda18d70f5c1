"""Sound devices through PortAudio: which there are, and at which instant each of their samples sounds.

Samples are counted; the callbacks' time information only says where the count begins. PortAudio is needed
when a device is asked for, never to import this.
"""

from __future__ import annotations

import contextlib
import ctypes
import ctypes.util
import statistics
import sys
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from voicebench.clock import NS_PER_S, now_ns
from voicebench.errors import BadRequest, MissingExtra, RunProblem

Direction = Literal["input", "output"]

LOST_AFTER_NS = 700_000_000
"""A stream that has called back for so long no more has lost its device."""
BLOCK_MS = 10
KEPT = 128
"""So many callbacks the estimate of a stream's beginning rests on."""
CLOSE_TIMEOUT_S = 2.0
_LONGEST_OFFSET_S = 1.0
_USUAL_RATES = (48_000, 44_100, 32_000, 16_000, 8_000)

_ALSA_SILENCE: Any = None
"""What ALSA calls instead of writing to standard error; it must live as long as the process."""


@dataclass(frozen=True)
class Device:
    """A sound device as PortAudio sees it."""

    index: int
    name: str
    host: str
    """The host interface: ALSA, Core Audio, WASAPI ..."""
    inputs: int
    outputs: int
    """Channels in each direction; 0: it has not that direction."""
    rate: int
    """The rate in Hz that PortAudio holds for its own."""
    default_input: bool = False
    default_output: bool = False

    def channels(self, direction: Direction) -> int:
        """Channels in that direction."""
        return self.inputs if direction == "input" else self.outputs

    def to_dict(self) -> dict[str, Any]:
        """Plain values for records and `--json`."""
        return {
            "index": self.index,
            "name": self.name,
            "host": self.host,
            "inputs": self.inputs,
            "outputs": self.outputs,
            "rate": self.rate,
            "default_input": self.default_input,
            "default_output": self.default_output,
        }


def portaudio() -> Any:
    """The sounddevice module. Raises MissingExtra without it, BadRequest where PortAudio is missing."""
    try:
        import sounddevice
    except ImportError as error:
        raise MissingExtra("sounddevice", "live", "Speaking into a microphone") from error
    except OSError as error:
        raise BadRequest(
            f"The audio library PortAudio is not there: {' '.join(str(error).split())}.",
            "Install it; on Debian and Ubuntu:  apt-get install libportaudio2   (recordings need none: "
            "voicebench batch)",
        ) from error
    _hush_alsa()
    return sounddevice


def _hush_alsa() -> None:
    """Keep ALSA from writing over the screen what the streams count anyway."""
    global _ALSA_SILENCE
    if not sys.platform.startswith("linux") or _ALSA_SILENCE is not None:
        return
    name = ctypes.util.find_library("asound")
    if name is None:
        return
    kind = ctypes.CFUNCTYPE(
        None, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p
    )
    silence = kind(lambda *_: None)
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(name).snd_lib_error_set_handler(silence)
        _ALSA_SILENCE = silence


def list_devices() -> list[Device]:
    """All devices, in PortAudio's order. Raises as `portaudio` does."""
    library = portaudio()
    try:
        hosts = library.query_hostapis()
        found = library.query_devices()
        defaults = [_index(library.default.device, place) for place in (0, 1)]
    except library.PortAudioError as error:
        raise BadRequest(f"The sound devices cannot be listed: {error}.") from error
    return [
        Device(
            index=place,
            name=str(one["name"]),
            host=str(hosts[one["hostapi"]]["name"]),
            inputs=int(one["max_input_channels"]),
            outputs=int(one["max_output_channels"]),
            rate=round(one["default_samplerate"]),
            default_input=place == _default(defaults[0], hosts, "input"),
            default_output=place == _default(defaults[1], hosts, "output"),
        )
        for place, one in enumerate(found)
    ]


def _index(pair: Any, place: int) -> int:
    try:
        return int(pair[place])
    except (TypeError, ValueError, IndexError):
        return -1


def _default(chosen: int, hosts: Any, direction: str) -> int:
    if chosen >= 0:
        return chosen
    return next((int(host[f"default_{direction}_device"]) for host in hosts), -1)


def find_device(wanted: str | None, direction: Direction, devices: list[Device] | None = None) -> Device:
    """The device with that index or name (a part of the name is enough where it fits one); None: the default.

    Raises BadRequest, naming the devices there are, where none or more than one fits.
    """
    there = [one for one in (list_devices() if devices is None else devices) if one.channels(direction)]
    kind = "microphone" if direction == "input" else "loudspeaker"
    if not there:
        raise BadRequest(
            f"This machine has no {kind}.",
            "Connect one; `voicebench live --list-devices` shows what is seen. Recordings need none: "
            "voicebench batch",
        )
    if wanted is None:
        flag = "default_input" if direction == "input" else "default_output"
        return next((one for one in there if getattr(one, flag)), there[0])
    names = "; ".join(f"{one.index} {one.name}" for one in there)
    fitting = [one for one in there if str(one.index) == wanted.strip() or one.name == wanted]
    if not fitting:
        fitting = [one for one in there if wanted.casefold() in one.name.casefold()]
    if len(fitting) == 1:
        return fitting[0]
    said = f"--{direction}-device {wanted!r}"
    if fitting:
        raise BadRequest(f"{said} fits several devices.", f"Name one by its index: {names}")
    raise BadRequest(f"{said}: no {kind} has that index or name.", f"There are: {names}")


class StreamClock:
    """The instants of a stream's samples: sample `i` is at `origin + i / rate`.

    Each callback gives one estimate of the origin; their median counts. Where the time information is
    implausible (zero, of the wrong sign, further than a second off) the callback's own instant stands in.
    """

    def __init__(self, rate: int, direction: Direction) -> None:
        self.rate = rate
        self._input = direction == "input"
        self._origins: deque[int] = deque(maxlen=KEPT)
        self._lock = threading.Lock()
        self._block_ns = 0
        self.guessed = 0
        """Callbacks whose time information was implausible."""
        self.noted = 0

    def note(self, first: int, frames: int, now: int, offset_s: float | None) -> None:
        """A callback at `now` ns concerns samples `first` to `first + frames`.

        `offset_s` is the first one's instant less that of the call, by the stream's own clock.
        """
        length = frames * NS_PER_S // self.rate
        self._block_ns = length
        offset = None if offset_s is None else round(offset_s * NS_PER_S)
        if self._input:
            # A block comes only when its last sample was heard.
            good = offset is not None and -_LONGEST_OFFSET_S * NS_PER_S < offset <= 0
            lead = min(offset or 0, -length) if good else -length
        else:
            good = offset is not None and 0 < offset < _LONGEST_OFFSET_S * NS_PER_S
            lead = (offset or 0) if good else 0
        self.noted += 1
        self.guessed += not good
        with self._lock:
            self._origins.append(now + lead - first * NS_PER_S // self.rate)

    def restart(self) -> None:
        """Samples were lost: what was known of the count's beginning holds no more."""
        with self._lock:
            self._origins.clear()

    @property
    def origin_ns(self) -> int | None:
        """The instant of sample 0; None before the first callback."""
        with self._lock:
            return int(statistics.median_low(self._origins)) if self._origins else None

    def instant(self, sample: int | float) -> int:
        """The instant of a sample, in ns. Before the first callback it is now."""
        origin = self.origin_ns
        return now_ns() if origin is None else origin + round(sample * NS_PER_S / self.rate)

    def sample_at(self, instant_ns: int) -> int:
        """The sample at an instant; 0 before the first callback."""
        origin = self.origin_ns
        return 0 if origin is None else round((instant_ns - origin) * self.rate / NS_PER_S)

    @property
    def uncertainty_ns(self) -> int:
        """By how much an instant may be off, in ns.

        The spread of the estimates (5 % to 95 %, halved) and one block; without usable time information two
        blocks more. What a device does behind PortAudio's back (Bluetooth, an amplifier) is not in it.
        """
        with self._lock:
            origins = sorted(self._origins)
        if not origins:
            return LOST_AFTER_NS
        low, high = origins[len(origins) // 20], origins[-1 - len(origins) // 20]
        trusted = self.guessed * 2 < self.noted
        return (high - low) // 2 + self._block_ns + (0 if trusted else 2 * self._block_ns)


class DeviceStream:
    """An open stream of one channel at the device's own rate; `lost` tells when its device is gone."""

    def __init__(self, device: Device, direction: Direction) -> None:
        self.device = device
        self.direction = direction
        self.rate = 0
        self.clock = StreamClock(48_000, direction)
        self.frames = 0
        """Samples so far."""
        self.troubles = 0
        """Overflows of an input, underflows of an output."""
        self._stream: Any = None
        self._last_ns = 0
        self._ended = False

    def open(self, block: Callable[[Any, int], None]) -> None:
        """Open and start; `block(data, first)` is called in the audio library's own thread.

        `data` is float32 of shape (frames, channels). Raises BadRequest where the device refuses.
        """
        library = portaudio()
        made = library.InputStream if self.direction == "input" else library.OutputStream
        try:
            self.rate, channels = self._settings(library)
            self.clock = StreamClock(self.rate, self.direction)
            self._stream = made(
                device=self.device.index,
                channels=channels,
                samplerate=self.rate,
                blocksize=self.rate * BLOCK_MS // 1000,
                latency="low",
                dtype="float32",
                callback=self._callback(block),
                finished_callback=self._finished,
            )
            self._last_ns = now_ns() + LOST_AFTER_NS
            self._stream.start()
        except library.PortAudioError as error:
            raise BadRequest(
                f"The {self.direction} device {self.device.name!r} cannot be opened: {_told(error)}.",
                "Close what else uses it, or name another: voicebench live --list-devices",
            ) from error

    def _settings(self, library: Any) -> tuple[int, int]:
        """The first rate and number of channels that the device takes."""
        check = library.check_input_settings if self.direction == "input" else library.check_output_settings
        # PortAudio names 44100 Hz for any ALSA device that could do it.
        own = (self.device.rate, *_USUAL_RATES)
        rates = (48_000, *own) if self.device.host == "ALSA" else own
        problem: Exception | None = None
        for channels in dict.fromkeys((1, min(2, self.device.channels(self.direction)))):
            for rate in dict.fromkeys(rates):
                try:
                    check(device=self.device.index, channels=channels, samplerate=rate, dtype="float32")
                except library.PortAudioError as error:
                    problem = problem or error
                else:
                    return rate, channels
        assert problem is not None
        raise problem

    def _callback(self, block: Callable[[Any, int], None]) -> Callable[..., None]:
        def called(data: Any, frames: int, time: Any, status: Any) -> None:
            now = now_ns()
            stamp = time.inputBufferAdcTime if self.direction == "input" else time.outputBufferDacTime
            known = time.currentTime > 0 and stamp > 0
            if status.input_overflow or status.output_underflow:
                self.troubles += 1
                self.clock.restart()
            self.clock.note(self.frames, frames, now, stamp - time.currentTime if known else None)
            self._last_ns = now
            block(data, self.frames)
            self.frames += frames

        return called

    def _finished(self) -> None:
        self._ended = True

    @property
    def lost(self) -> bool:
        """Has the device gone?"""
        if self._stream is None:
            return False
        return self._ended or now_ns() - self._last_ns > LOST_AFTER_NS

    @property
    def facts(self) -> dict[str, Any]:
        """What a record says of the device."""
        return {
            "name": self.device.name,
            "host": self.device.host,
            "rate": self.rate,
            "troubles": self.troubles,
            "uncertainty_ms": round(self.clock.uncertainty_ns / 1e6, 3),
            "time_info": self.clock.guessed * 2 < max(1, self.clock.noted),
        }

    def close(self) -> None:
        """Stop and close, in two seconds at most: a device that is gone may never answer.

        Raises RunProblem where it does not, since the process can then only be left by force.
        """
        stream, self._stream = self._stream, None
        if stream is None:
            return

        def end() -> None:
            with contextlib.suppress(Exception):
                stream.abort(ignore_errors=True)
            with contextlib.suppress(Exception):
                stream.close(ignore_errors=True)

        thread = threading.Thread(target=end, name=f"close-{self.direction}", daemon=True)
        thread.start()
        thread.join(CLOSE_TIMEOUT_S)
        if thread.is_alive():
            raise RunProblem(f"The {self.direction} device {self.device.name!r} does not let go.")


def _told(error: Exception) -> str:
    return " ".join(str(error.args[0] if error.args else error).split())
