# Shared by the scripts beside it: where tools are kept, and how they get there.
# shellcheck shell=bash

tools=$PWD/.cofer-test
export PATH=$tools/tools/bin:$PATH:$HOME/.cargo/bin

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

fail() {
  say "$*"
  exit 1
}

# Runs a command as root: directly, or by sudo.
as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo -- "$@"
  else
    fail "this needs root, and there is no sudo: $*"
  fi
}

# Installs Debian packages; the package lists are fetched once per run, and only when something is missing.
apt_install() {
  command -v apt-get >/dev/null || fail "please install by hand (this machine has no apt): $*"
  say "installing $*"
  if [ -z "${apt_lists_fetched-}" ]; then
    as_root apt-get update -qq
    apt_lists_fetched=1
  fi
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >&2
}

# The library that gives a program another clock; nothing where it is not installed.
faketime_library() { dpkg -L libfaketime 2>/dev/null | grep '/libfaketimeMT\.so\.1$' || true; }

# is_made_from FOLDER FILE...: whether FOLDER was made from the FILEs as they are now.
is_made_from() {
  local folder=$1
  shift
  [ "$(cat "$folder/.made-from" 2>/dev/null)" = "$(cat "$@" | sha256sum)" ]
}

mark_made_from() {
  local folder=$1
  shift
  cat "$@" | sha256sum >"$folder/.made-from"
}

# npm_folder FOLDER SOURCE: the packages of SOURCE's lock file, in FOLDER.
npm_folder() {
  local folder=$1 source=$2
  is_made_from "$folder" "$source/package.json" "$source/package-lock.json" && return
  command -v npm >/dev/null || fail "npm is missing: install Node.js 20 or newer with npm"
  say "installing the npm packages of $source"
  rm -rf "$folder"
  mkdir -p "$folder"
  cp "$source/package.json" "$source/package-lock.json" "$folder"
  npm ci --prefix "$folder" --ignore-scripts --no-audit --no-fund --loglevel=error >&2
  mark_made_from "$folder" "$source/package.json" "$source/package-lock.json"
}

# The npm packages that the console is built and tested with, in its own folder, as its lock file says.
# Not `npm ci`, which refuses a lock file without the parts that are for other kinds of machines; these
# are not in it where the registry did not have them when it was written.
console_packages() {
  is_made_from console/node_modules console/package.json console/package-lock.json && return
  command -v npm >/dev/null || fail "npm is missing: install Node.js 20 or newer with npm"
  say "installing the console's npm packages"
  npm install --no-save --prefix console --ignore-scripts --no-audit --no-fund --loglevel=error >&2
  mark_made_from console/node_modules console/package.json console/package-lock.json
}

# python_folder FOLDER REQUIREMENTS: a virtual environment with the packages of that file.
python_folder() {
  local folder=$1 requirements=$2
  is_made_from "$folder" "$requirements" && "$folder/bin/python" -c '' 2>/dev/null && return
  python3 -c 'import ensurepip, venv' 2>/dev/null || apt_install python3 python3-venv
  say "installing the Python packages of $requirements"
  rm -rf "$folder"
  python3 -m venv "$folder"
  "$folder/bin/pip" install --quiet --disable-pip-version-check --requirement "$requirements" >&2
  mark_made_from "$folder" "$requirements"
}

# cargo_tool NAME VERSION [OPTION...]: a cargo subcommand; one that is installed already serves too.
cargo_tool() {
  local name=$1 version=$2
  shift 2
  command -v "$name" >/dev/null && return
  say "installing $name $version (a few minutes, once)"
  CARGO_TARGET_DIR=$tools/cargo-build cargo install --quiet --locked --root "$tools/tools" "$@" "$name@$version" >&2
  rm -rf "$tools/cargo-build"
}
