"""The measured pipeline. Importing it silences pipecat's banner and log, which come at pipecat's own import."""

from voicebench.stages.quiet import hush_pipecat

hush_pipecat()
