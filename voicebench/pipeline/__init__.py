"""The measured pipeline. Importing it silences the banner and log that come with pipecat's import."""

from voicebench.stages.quiet import hush_pipecat

hush_pipecat()
