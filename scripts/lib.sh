# Shared by the scripts beside it: where tools are kept, and how they get there.
# shellcheck shell=bash

# Tools of this checkout. Those that are installed from npm, PyPI and crates.io are links into the
# cache, which all checkouts of the user share: a fresh clone installs nothing that is there already.
tools=$PWD/.cofer-test
tool_cache=${XDG_CACHE_HOME:-$HOME/.cache}/cofer-test
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

# digest WORD... <FILES: the first characters of a digest of what is read and of the words.
digest() { { cat && printf '%s\n' "$@"; } | sha256sum | cut -c1-16; }

# cached LINK KEY INSTALL [ARGUMENT...]: makes LINK a link to a folder of the cache for KEY. A folder that is
# not there, or not complete, is made by `INSTALL ARGUMENT... FOLDER`, at its final path: virtual
# environments cannot be moved. The mark `.complete` is written last, and touched by each use.
cached() {
  local link=$1 key=$2 folder
  shift 2
  folder=$tool_cache/${link##*/}-$key
  mkdir -p "$tool_cache/.locks" "${link%/*}"
  # A second checkout waits here while the first one installs. The lock file is never removed:
  # that would let a process lock a new one while another still holds the old one.
  (
    flock 9
    if [ -e "$folder/.complete" ]; then
      touch "$folder/.complete"
    else
      rm -rf "$folder"
      mkdir "$folder"
      "$@" "$folder" 9>&- || exit
      echo "$key" >"$folder/.complete"
      remove_unused
    fi
  ) 9>"$tool_cache/.locks/${folder##*/}" || return
  # Earlier versions installed into the checkout.
  [ -L "$link" ] || rm -rf "$link"
  ln -sfn "$folder" "$link"
}

# Removes folders of the cache that no checkout has used for thirty days. The mark is checked again under
# the folder's lock, as a checkout may have touched it since.
remove_unused() {
  local mark folder
  find "$tool_cache" -mindepth 2 -maxdepth 2 -name .complete -mtime +30 | while read -r mark; do
    folder=${mark%/*}
    say "removing $folder, unused for thirty days"
    flock --nonblock "$tool_cache/.locks/${folder##*/}" find "$mark" -mtime +30 -exec rm -rf "$folder" \; || true
  done
}

# npm_folder LINK SOURCE: the packages of SOURCE's lock file.
npm_folder() {
  local link=$1 source=$2
  cached "$link" "$(cat "$source/package.json" "$source/package-lock.json" | digest "$(uname -sm)")" install_npm "$source"
}

install_npm() {
  local source=$1 folder=$2
  command -v npm >/dev/null || fail "npm is missing: install Node.js 20 or newer with npm"
  say "installing the npm packages of $source"
  cp "$source/package.json" "$source/package-lock.json" "$folder"
  npm ci --prefix "$folder" --ignore-scripts --no-audit --no-fund --loglevel=error >&2
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

# python_folder LINK REQUIREMENTS: a virtual environment with the packages of that file. It has the Python that it was
# made with in its key: the one of another version cannot use its packages.
python_folder() {
  local link=$1 requirements=$2
  python3 -c 'import ensurepip, venv' 2>/dev/null || apt_install python3 python3-venv
  cached "$link" "$(digest "$(python3 -VV)" "$(command -v python3)" <"$requirements")" install_python "$requirements"
}

install_python() {
  local requirements=$1 folder=$2
  say "installing the Python packages of $requirements"
  python3 -m venv "$folder" &&
    "$folder/bin/pip" install --quiet --disable-pip-version-check --requirement "$requirements" >&2
}

# python_source LINK PACKAGE==VERSION: the unpacked source distribution of a package of PyPI.
python_source() {
  local link=$1 package=$2
  cached "$link" "$(digest "$package" </dev/null)" install_python_source "$package"
}

install_python_source() {
  local package=$1 folder=$2
  say "fetching the source of $package"
  "$tools/venv/bin/pip" download --quiet --disable-pip-version-check --no-deps --no-binary :all: --dest "$folder" "$package" >&2
  tar -xzf "$folder"/*.tar.gz -C "$folder" --strip-components 1
}

# cargo_tool NAME VERSION [OPTION...]: a cargo subcommand; one that the machine has already serves too.
cargo_tool() {
  local name=$1 version=$2 found
  shift 2
  found=$(command -v "$name") && [[ $found != "$tools"/* ]] && return
  cached "$tools/tools/$name" "$(rustc -vV | sed -n '/^host/p' | digest "$version" "$@")" install_cargo "$name@$version" "$@"
  mkdir -p "$tools/tools/bin"
  ln -sf "../$name/bin/$name" "$tools/tools/bin/$name"
}

install_cargo() {
  local package=$1 folder=${*: -1}
  say "installing $package (a few minutes, once)"
  CARGO_TARGET_DIR=$folder/build cargo install --quiet --locked --root "$folder" "${@:2:$#-2}" "$package" >&2 || return
  rm -rf "$folder/build"
}
