"""The live conversation in a web page: the browser is the microphone, the loudspeaker and the screen."""
