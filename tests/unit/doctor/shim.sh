#!/bin/bash
# The system's programs of a small machine in $SANDBOX: they do to its files what the real ones do to a machine's.
# What was run is kept in $SANDBOX/ran; a script hooks/NAME-started is what that service does when it starts.
echo "${0##*/} $*" >> "$SANDBOX/ran"
units="$SANDBOX/units"
set_() { sed -i "s/^$2=.*/$2=$3/" "$units/$1"; }
started() {
  set_ "$1" ActiveState active; set_ "$1" SubState running; set_ "$1" Result success
  if [ -x "$SANDBOX/hooks/$1-started" ]; then "$SANDBOX/hooks/$1-started"; fi
}
unit() { echo "${1%.service}"; }
case "${0##*/}" in
  sudo) exec "$@" ;;
  service) started "$1" ;;
  systemctl)
    [ "$1" = --user ] && { [ "$2" = show ] && echo LoadState=not-found; exit 0; }
    action="$1"; shift; [ "$1" = --now ] && shift
    case "$action" in
      show) name=$(unit "$1"); if [ -f "$units/$name" ]; then cat "$units/$name"; else echo LoadState=not-found; fi
            sed -n 's/^PrivateDevices=/PrivateDevices=/p' "$SANDBOX/root/etc/systemd/system/$name.service.d/"*.conf 2>/dev/null
            if [ "$name" = bluetooth ]; then
              restart=$(sed -n 's/^Restart=//p' "$SANDBOX/root/etc/systemd/system/bluetooth.service.d/"*.conf 2>/dev/null)
              echo "Restart=${restart:-no}"
            fi ;;
      enable) set_ "$(unit "$1")" UnitFileState enabled; started "$(unit "$1")" ;;
      reload) if [ -x "$SANDBOX/hooks/$1-reloaded" ]; then "$SANDBOX/hooks/$1-reloaded"; fi ;;
      restart|start) started "$(unit "$1")" ;;
      reset-failed) set_ "$(unit "$1")" NRestarts 0 ;;
      unmask) set_ "$(unit "$1")" LoadState loaded ;;
      revert) set_ "$(unit "$1")" WatchdogUSec 30s; set_ "$(unit "$1")" User glassd ;;
      daemon-reload) sed -i 's/^NeedDaemonReload=.*/NeedDaemonReload=no/' "$units"/* ;;
    esac ;;
  systemd-sysusers) touch "$SANDBOX/user-made" ;;
  sysctl) sed 's/.*= *//' "${@: -1}" > "$SANDBOX/root/proc/sys/net/core/rmem_default" ;;
  apt-get) [ "$1" = install ] && { name="${@: -1}"; [ ! -x "$SANDBOX/hooks/$name-installed" ] || "$SANDBOX/hooks/$name-installed"; }; exit 0 ;;
  reboot) mkdir -p "$SANDBOX/root/sys/class/bluetooth/hci0" ;;
  bluetoothctl)
    if [ "$1" = --version ]; then [ -f "$SANDBOX/bluez-version" ] && echo "bluetoothctl: $(cat "$SANDBOX/bluez-version")"; exit 0; fi
    [ "$*" = "power on" ] && exec dbus-send --bus="$DBUS_SYSTEM_BUS_ADDRESS" --print-reply --dest=org.bluez /org/bluez/hci0 \
      org.freedesktop.DBus.Properties.Set string:org.bluez.Adapter1 string:Powered variant:boolean:true ;;
  date) /usr/bin/date -u -d "${@: -1}" +%s > "$SANDBOX/wall" ;;
  timedatectl)
    case "$1" in
      show) cat "$SANDBOX/timedate" 2>/dev/null || exit 1 ;;
      set-ntp) sed -i 's/^NTP=.*/NTP=yes/' "$SANDBOX/timedate"; /usr/bin/date +%s > "$SANDBOX/wall"; touch "$SANDBOX/synchronised" ;;
    esac ;;
  journalctl) [ "$1" = --vacuum-size=50M ] && rm -rf "$SANDBOX/root/var/log/journal/"*; cat "$SANDBOX/journal" 2>/dev/null ;;
esac
exit 0
