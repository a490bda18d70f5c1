#!/bin/sh
# What the tests need of the system: a virtual sound card and a browser. Installs from Debian where it may,
# else says what to run. VOICEBENCH_NO_LIVE=1 goes on without them; the tests then skip and say so.
set -eu

missing=""
need() { # package, then a test that is true where it is there
    package=$1
    shift
    "$@" >/dev/null 2>&1 || missing="$missing $package"
}
has_library() { ldconfig -p | grep -q "$1"; }

[ "$(uname -s)" = Linux ] || exit 0
PATH="$PATH:/sbin:/usr/sbin"
need libportaudio2 has_library libportaudio.so.2
need pulseaudio command -v pulseaudio
need pulseaudio-utils command -v pactl
need libasound2-plugins sh -c 'ls /usr/lib/*/alsa-lib/libasound_module_pcm_pulse.so'
need alsa-utils command -v aplay
need chromium command -v chromium
[ -n "$missing" ] || exit 0

command="apt-get install --yes --no-install-recommends$missing"
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "Installing for the tests:$missing"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update --quiet --quiet </dev/null
    $command --quiet </dev/null >/dev/null
    exit 0
fi
echo "The live tests need:$missing" >&2
echo "Install them with:  sudo $command" >&2
if [ "${VOICEBENCH_NO_LIVE:-}" = 1 ] && [ "${CI:-}" != true ]; then
    echo "Going on without, as VOICEBENCH_NO_LIVE=1 asks: the live tests are skipped." >&2
    exit 0
fi
echo "Or go on without them:  VOICEBENCH_NO_LIVE=1 make test" >&2
exit 2
