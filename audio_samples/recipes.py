"""What the audio samples say, in which voice, format and condition. make_samples.py makes them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

JOE = "piper en_US-joe-medium"
ESPEAK_MAN = "espeak-ng en-us+m3"
ESPEAK_WOMAN = "espeak-ng en-us+f4"
ESPEAK_BRITISH = "espeak-ng en-gb+f2"
ESPEAK_MICHEL = "espeak-ng en-us+michel"
NOBODY = "none"


@dataclass(frozen=True)
class Recipe:
    """What one sample says, who says it, and in which condition it reaches the listener.

    `parts` lie `pause_s` of silence apart. `speed` is relative to the voice's own. `subtype` is libsndfile's
    name of the coding, None for the container's usual one.
    """

    file: str
    rate: int
    voice: str
    condition: str
    parts: tuple[str, ...]
    answers: tuple[str, ...] = ()
    pause_s: float = 0.0
    speed: float = 0.9
    subtype: str | None = None

    @property
    def id(self) -> str:
        """The sample's name: its file's, without the extension."""
        return Path(self.file).stem

    @property
    def seed(self) -> int:
        """A number that is this sample's own."""
        return int.from_bytes(self.id.encode(), "big") % (2**31 - 1)


RECIPES = (
    # One everyday question each, alone in a quiet room.
    Recipe(
        "capital-of-france.wav", 16000, JOE, "clean", ("What is the capital city of France?",), ("Paris",)
    ),
    Recipe(
        "days-in-a-week.wav", 22050, JOE, "clean", ("Tell me, how many days are in a week?",), ("seven", "7")
    ),
    Recipe("clear-sky.flac", 24000, JOE, "clean", ("What color is a clear daytime sky?",), ("blue",)),
    Recipe("two-plus-two.wav", 16000, JOE, "clean", ("Do you know what two plus two is?",), ("four", "4")),
    Recipe("spider-legs.flac", 16000, JOE, "clean", ("How many legs does a spider have?",), ("eight", "8")),
    Recipe("opposite-of-cold.opus", 48000, JOE, "clean", ("What is the opposite of cold?",), ("hot",)),
    Recipe(
        "months-in-a-year.mp3",
        44100,
        JOE,
        "clean",
        ("How many months are there in a year?",),
        ("twelve", "12"),
    ),
    Recipe("frozen-water.wav", 16000, JOE, "clean", ("What do we call frozen water?",), ("ice",)),
    Recipe(
        "fresh-grass.opus", 48000, JOE, "clean", ("Please tell me what color fresh grass is.",), ("green",)
    ),
    Recipe("red-planet.mp3", 16000, JOE, "clean", ("Which planet is called the red planet?",), ("Mars",)),
    Recipe(
        "first-month.wav",
        22050,
        ESPEAK_WOMAN,
        "clean",
        ("What is the first month of the year?",),
        ("January",),
    ),
    Recipe(
        "capital-of-england.wav",
        16000,
        ESPEAK_MAN,
        "clean",
        ("What is the capital of England?",),
        ("London",),
    ),
    Recipe(
        "largest-ocean.flac",
        22050,
        ESPEAK_BRITISH,
        "clean",
        ("What is the largest ocean on Earth?",),
        ("Pacific",),
    ),
    Recipe(
        "hours-in-a-day.wav",
        16000,
        ESPEAK_MICHEL,
        "clean",
        ("How many hours are there in a day?",),
        ("twenty-four", "twenty four", "24"),
    ),
    # Other lengths, and pauses that a turn detector may take for the end.
    Recipe("yes.wav", 16000, JOE, "short", ("Yes.",)),
    Recipe(
        "dinner-for-six.flac",
        16000,
        JOE,
        "long",
        (
            "I am cooking dinner for six people on Saturday evening, two of them do not eat meat and one "
            "does not like mushrooms, so please suggest a main course, a side dish and a dessert and tell me "
            "how long it takes to cook.",
        ),
    ),
    Recipe(
        "fruit-pause.wav",
        16000,
        JOE,
        "pause",
        ("I have three apples and two oranges.", "How many pieces of fruit is that?"),
        ("five", "5"),
        pause_s=0.7,
    ),
    Recipe(
        "japan-pause.wav",
        16000,
        JOE,
        "pause",
        ("I have a question about Japan.", "What is its capital city?"),
        ("Tokyo",),
        pause_s=1.3,
    ),
    # What telephones, rooms and recorders do to a voice; and nobody there at all.
    Recipe(
        "capital-of-italy-noise.flac",
        16000,
        JOE,
        "noise",
        ("What is the capital city of Italy?",),
        ("Rome",),
    ),
    Recipe(
        "minutes-in-an-hour-telephone.wav",
        8000,
        JOE,
        "telephone",
        ("How many minutes are there in an hour?",),
        ("sixty", "60"),
        subtype="ULAW",
    ),
    Recipe(
        "capital-of-spain-quiet.wav",
        16000,
        JOE,
        "quiet",
        ("What is the capital city of Spain?",),
        ("Madrid",),
    ),
    Recipe(
        "wool-stereo.flac",
        44100,
        JOE,
        "stereo",
        ("Which animal gives us wool?",),
        ("sheep",),
    ),
    Recipe("silence.wav", 16000, NOBODY, "silence", ()),
)
