#!/usr/bin/env bash
# image.sh SUITE FOLDER: a Debian machine for the stories, as files: vmlinuz, initrd, root.img (ext4, systemd, D-Bus, BlueZ).
# Knows Debian, nothing of glassd: our code comes on a second disk at run time, so this is built once and kept for long.
#
# The generic kernel, because the cloud kernel has no Bluetooth; of its modules only those that a virtual machine with a
# virtual controller loads. Its package is unpacked, not installed: no initramfs-tools, no 400 MB of drivers.
set -euo pipefail
suite=$1 out=$2
packages=systemd,systemd-sysv,libnss-systemd,libpam-systemd,dbus,dbus-user-session,udev,kmod,bluez,python3,python3-venv,adduser,make,procps,util-linux,iproute2,ca-certificates
# The mirror is the one this machine's own apt uses.
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Component: main' | sed -n 's#/*$##; /\/debian$/{p;q}')
[ -n "$mirror" ] || { echo "apt knows no Debian mirror on this machine (apt-get update first?)" >&2; exit 1; }

mkdir -p "$out"; cd "$out"
root=$out/root kernel=$out/kernel
rm -rf "$root" "$kernel"
fetch='mkdir "$1"/linux && chroot "$1" sh -c "cd /linux && apt-get download -q \$(apt-cache depends --important linux-image-amd64 | sed -n \"s/.*Depends: //p\" | head -n 1)"'
mmdebstrap --quiet --variant=minbase --include="$packages" --customize-hook="$fetch" \
  --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/man/*' \
  "$suite" "$root" "deb $mirror $suite main" "deb ${mirror%/debian}/debian-security $suite-security main"
mkdir "$kernel"; dpkg-deb -x "$root"/linux/linux-image-*.deb "$kernel"; rm -rf "$root/linux"
modules=$(find "$kernel" -type d -path '*lib/modules/*' -prune | head -n 1); release=$(basename "$modules")
cp "$kernel/boot/vmlinuz-$release" vmlinuz

# ------------------------------------------------------------------ modules
target=$root/usr/lib/modules/$release; mkdir -p "$target"
cp "$modules"/modules.{builtin,order,builtin.modinfo} "$target"/
(cd "$modules" && find kernel/net/{bluetooth,rfkill} kernel/crypto kernel/arch/x86/crypto kernel/lib kernel/fs/{ext4,jbd2,autofs} \
   kernel/fs/mbcache.ko* kernel/drivers/bluetooth/hci_vhci.ko* kernel/drivers/hid/{hid,uhid}.ko* kernel/drivers/virtio \
   kernel/drivers/block/{virtio_blk,loop}.ko* kernel/drivers/char/virtio_console.ko* kernel/drivers/char/hw_random kernel/drivers/virt/vmgenid.ko* \
   -name '*.ko*' -print0 2>/dev/null | cpio -0pdum --quiet "$target") || true
depmod -b "$root" "$release" 2>/dev/null || depmod -b "$root/usr" "$release"

# ------------------------------------------------------------------ systemd in the guest
etc=$root/etc/systemd/system
echo glassvm > "$root/etc/hostname"; printf '127.0.0.1 localhost glassvm\n' > "$root/etc/hosts"; : > "$root/etc/fstab"; : > "$root/etc/resolv.conf"
od -An -N16 -tx1 /dev/urandom | tr -d ' \n' > "$root/etc/machine-id"
printf 'hci_vhci\nuhid\n' > "$root/etc/modules-load.d/vm.conf"
# What a machine of a few minutes' life does not need; emulated, each of these costs seconds or wakes up when the clock is set.
for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service fstrim.timer \
  systemd-timesyncd.service getty@tty1.service serial-getty@ttyS0.service systemd-binfmt.service proc-sys-fs-binfmt_misc.automount \
  systemd-hostnamed.service systemd-firstboot.service systemd-random-seed.service systemd-tmpfiles-clean.timer; do
  rm -f "$etc"/*.wants/"$unit"; ln -sf /dev/null "$etc/$unit"
done
# udev starts bluetoothd with the first controller; here it waits for one, like a Pi whose firmware loads late.
mkdir -p "$etc/multi-user.target.wants" "$etc/bluetooth.service.d"
ln -sf /lib/systemd/system/bluetooth.service "$etc/multi-user.target.wants/bluetooth.service"
ln -sf /lib/systemd/system/bluetooth.service "$etc/dbus-org.bluez.service"
printf '[Unit]\nConditionPathIsDirectory=\n' > "$etc/bluetooth.service.d/90-vm.conf"
cat > "$etc/vm-door.service" <<'UNIT'
[Unit]
Description=the host's door into this machine
After=multi-user.target
[Service]
ExecStart=/usr/bin/python3 /usr/local/lib/vm-door.py
UNIT
mkdir -p "$etc/graphical.target.wants"; ln -sf /etc/systemd/system/vm-door.service "$etc/graphical.target.wants/"
ln -sf /lib/systemd/system/graphical.target "$etc/default.target"
install -m 644 "$(dirname "${BASH_SOURCE[0]}")/door.py" "$root/usr/local/lib/vm-door.py"
chroot "$root" python3 -m compileall -q /usr/lib/python3* >/dev/null 2>&1 || true

# ------------------------------------------------------------------ initrd: just enough to mount the disk
boot=$out/boot; rm -rf "$boot"; mkdir -p "$boot"/{bin,m,proc,sys,dev,root}
cp "$(command -v busybox)" "$boot/bin/"
for name in sh mount insmod switch_root sleep; do ln -sf busybox "$boot/bin/$name"; done
for module in virtio_pci virtio_blk virtio_console ext4; do modprobe -d "$root" -S "$release" --show-depends "$module"; done |
  awk '$1 == "insmod" && !seen[$2]++ { print $2 }' | while read -r file; do
    plain=$(basename "$file"); plain=${plain%.xz}; plain=${plain%.zst}
    case $file in *.xz) xz -dc "$file" > "$boot/m/$plain" ;; *.zst) zstd -dqc "$file" > "$boot/m/$plain" ;; *) cp "$file" "$boot/m/$plain" ;; esac
    echo "$plain" >> "$boot/order"
  done
cat > "$boot/init" <<'INIT'
#!/bin/sh
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
while read -r module; do insmod "/m/$module"; done < /order
tries=0; while [ ! -b /dev/vda ] && [ $tries -lt 200 ]; do sleep 0.05; tries=$((tries + 1)); done
mount -t ext4 -o noatime /dev/vda /root || exec sh
for place in dev proc sys; do mount --move /$place /root/$place; done
exec switch_root /root /lib/systemd/systemd
INIT
chmod +x "$boot/init"; (cd "$boot" && find . | cpio -oH newc --quiet) > initrd

# Half a gigabyte of room: enough to install packages and virtual environments in a story.
truncate -s 0 root.img; truncate -s 2G root.img
mke2fs -q -F -t ext4 -d "$root" -m 0 -O ^has_journal,^metadata_csum -E lazy_itable_init=1 root.img
rm -rf "$kernel" "$boot"
echo "$release" > kernel-release
