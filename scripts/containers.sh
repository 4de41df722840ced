# Shared by the scripts that use containers: a storage, a network and settings of their own, so that
# nothing of the user's containers is touched, and how images are made without a registry.
# Read after lib.sh; from then on `podman` is that of the tests.
# shellcheck shell=bash disable=SC2154

containers=$tools/containers
image_prefix=localhost/cofer-test
# Tells this checkout from the others of the machine.
checkout=$(printf %s "$containers" | sha256sum | cut -c1-8)
# What does not outlive a boot, where sockets have short paths.
containers_run=/run/cofer-test/$checkout
[ "$(id -u)" = 0 ] || containers_run=${XDG_RUNTIME_DIR:-/tmp}/cofer-test/$checkout
export CONTAINERS_CONF=$containers/containers.conf
export CONTAINERS_STORAGE_CONF=$containers/storage.conf
export CONTAINERS_REGISTRIES_CONF=$containers/registries.conf
export COFER_TEST_CONTAINERS=$containers
# What runs containers that ask for nothing else.
export COFER_TEST_OCI_RUNTIME=${COFER_TEST_OCI_RUNTIME-runc}

# at_most LIMIT HARD: the lower of the two.
at_most() { if [ "$2" != unlimited ] && [ "$2" -lt "$1" ]; then echo "$2"; else echo "$1"; fi; }

# write_settings DRIVER: everything that Podman reads.
write_settings() {
  local driver=$1 files processes manager=cgroupfs subnet
  # Podman asks for more than a machine without CAP_SYS_RESOURCE gives.
  files=$(at_most 20000 "$(ulimit -Hn)")
  processes=$(at_most 30000 "$(ulimit -Hu)")
  [ ! -d /run/systemd/system ] || manager=systemd
  subnet=10.217.$((16#${checkout:0:2}))
  mkdir -p "$containers/networks" "$containers_run"
  cat >"$CONTAINERS_CONF" <<END
[containers]
default_ulimits = ["nofile=$files:$files", "nproc=$processes:$processes"]
[engine]
runtime = "$COFER_TEST_OCI_RUNTIME"
cgroup_manager = "$manager"
events_logger = "file"
# The other kind is one table for all of the machine's containers.
lock_type = "file"
tmp_dir = "$containers_run/engine"
static_dir = "$containers/storage/libpod"
volume_path = "$containers/storage/volumes"
[network]
network_backend = "netavark"
network_config_dir = "$containers/networks"
default_network = "cofer-test"
END
  cat >"$CONTAINERS_STORAGE_CONF" <<END
[storage]
driver = "$driver"
graphroot = "$containers/storage"
rootless_storage_path = "$containers/storage"
runroot = "$containers_run/storage"
END
  # The registries of the tests speak plain HTTP, on ports of their own.
  cat >"$CONTAINERS_REGISTRIES_CONF" <<END
[[registry]]
prefix = "127.0.0.1"
location = "127.0.0.1"
insecure = true
END
  cat >"$containers/networks/cofer-test.json" <<END
{
  "name": "cofer-test",
  "id": "c0fe000000000000000000000000000000000000000000000000000000000000",
  "driver": "bridge",
  "network_interface": "cofer-$checkout",
  "created": "2026-01-01T00:00:00Z",
  "subnets": [{"subnet": "$subnet.0/24", "gateway": "$subnet.1"}],
  "ipv6_enabled": false,
  "internal": false,
  "dns_enabled": false,
  "ipam_options": {"driver": "host-local"}
}
END
}

# Installs Podman and what goes with it, and writes its settings.
setup_podman() {
  local package program driver missing=()
  # Each package, and a program by which it is known to be there.
  while read -r package program; do
    PATH=$PATH:/usr/sbin:/sbin:/usr/lib/podman command -v "$program" >/dev/null || missing+=("$package")
  done <<LIST
podman podman
$COFER_TEST_OCI_RUNTIME $COFER_TEST_OCI_RUNTIME
runsc runsc
netavark netavark
aardvark-dns aardvark-dns
catatonit catatonit
iptables iptables
busybox-static busybox
docker-registry docker-registry
LIST
  if [ ${#missing[@]} != 0 ]; then
    # The program is wanted, not a registry that is always there.
    [ ! -d /run/systemd/system ] || command -v docker-registry >/dev/null || as_root systemctl mask docker-registry
    apt_install "${missing[@]}"
  fi
  driver=$(cat "$containers/driver" 2>/dev/null || echo overlay)
  write_settings "$driver"
  podman info >/dev/null 2>"$containers/why" && return
  if [ "$driver" = overlay ]; then
    say "no overlay file system below $containers, layers are copied instead: $(tail -n 1 "$containers/why")"
    write_settings vfs
    echo vfs >"$containers/driver"
    podman info >/dev/null 2>"$containers/why" && return
  fi
  fail "Podman does not work here: $(cat "$containers/why")"
}

# base_of ROOT: a root file system with busybox under its many names, and two users.
base_of() {
  local root=$1 name
  rm -rf "$root"
  mkdir -p "$root"/{bin,data,dev,etc,home/person,proc,root,run,sys,tmp,usr,var}
  chmod 1777 "$root/tmp"
  chmod 0777 "$root/data"
  cp "$(command -v busybox)" "$root/bin/busybox"
  for name in sh cat dd dmesg echo head httpd id ls mount ps sleep uname wget; do
    ln -s busybox "$root/bin/$name"
  done
  printf '%s\n' root:x:0:0::/root:/bin/sh person:x:1000:1000::/home/person:/bin/sh >"$root/etc/passwd"
  printf '%s\n' root:x:0: person:x:1000: >"$root/etc/group"
}

# add_libraries ROOT PROGRAM: the libraries of a program, with the loader.
add_libraries() {
  local root=$1 file
  ldd "$2" | grep -o '/[^ ]*' | sort -u | while read -r file; do
    mkdir -p "$root$(dirname "$file")"
    cp --dereference "$file" "$root$file"
  done
}

# image NAME ROOT CHANGE...: an image of one layer, made where ROOT or the changes are other than they were.
image() {
  local name=$image_prefix/$1 root=$2 changes=() change made_from
  shift 2
  for change in "$@"; do changes+=(--change "$change"); done
  tar -C "$root" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf "$containers/image.tar" .
  made_from=$(printf '%s\n' "$@" | cat - "$containers/image.tar" | sha256sum | cut -d' ' -f1)
  if [ "$(podman image inspect --format '{{.Comment}}' "$name" 2>/dev/null)" != "$made_from" ]; then
    say "making the image $name"
    podman import --quiet --message "$made_from" "${changes[@]}" "$containers/image.tar" "$name" >/dev/null
  fi
  rm -f "$containers/image.tar"
}

# static_program PACKAGE PROGRAM [OPTION...]: builds a program that needs no libraries and prints its
# path. It has a folder of its own in target, as it differs from the other builds by a flag.
static_program() {
  local package=$1 program=$2 triple profile=debug
  shift 2
  [ "${1-}" != --release ] || profile=release
  triple=$(rustc -vV | sed -n 's/^host: //p')
  RUSTFLAGS='-C target-feature=+crt-static -C strip=symbols' \
    cargo build --quiet --package "$package" --bin "$program" --target "$triple" "$@" >&2
  echo "target/$triple/$profile/$program"
}
