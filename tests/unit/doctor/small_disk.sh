#!/bin/bash
# Inside a mount namespace of its own: mount a small file system on $1, fill it in the way of $2, then run the rest.
set -e
mount -t tmpfs -o size=${SIZE:-6m} none "$1"
chmod 700 "$1"
case "$2" in
  aside) head -c 5m /dev/zero > "$1/glassd.db.bad-1" ;;
  journal) mkdir "$1/journal"; head -c 5m /dev/zero > "$1/journal/system.journal" ;;
  readonly) mount -o remount,ro "$1" ;;
  inodes) mount -o remount,nr_inodes=50 "$1" ;;
esac
shift 2
exec "$@"
