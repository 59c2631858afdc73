#!/bin/sh
# Installs Understudy @VERSION@: downloads the archive for this machine, compares its SHA-256 checksum, and copies its files.
# UNDERSTUDY_PREFIX is the folder to install into (default: /usr/local for root, else ~/.local).
# UNDERSTUDY_URL is the address of the release.
set -eu
umask 022

fail() {
  echo "install.sh: $*" >&2
  exit 1
}

fetch() {
  if command -v curl >/dev/null; then
    curl -fsSL -o "$2" "$1" || fail "cannot download $1"
  else
    wget -q -O "$2" "$1" || fail "cannot download $1; curl or wget is needed"
  fi
}

# Nothing runs before the last line, so that a script that was not downloaded whole does nothing.
install_understudy() {
  url=${UNDERSTUDY_URL:-@URL@}
  [ -n "$url" ] || fail "set UNDERSTUDY_URL to the address of the release"
  prefix=${UNDERSTUDY_PREFIX:-}
  if [ -z "$prefix" ]; then
    prefix=$HOME/.local
    [ "$(id -u)" -ne 0 ] || prefix=/usr/local
  fi
  case $(uname -s) in
    Linux) os=linux ;;
    Darwin) os=darwin ;;
    *) fail "there is no archive for $(uname -s) that this script can install; see $url" ;;
  esac
  case $(uname -m) in
    x86_64 | amd64) arch=amd64 ;;
    aarch64 | arm64) arch=arm64 ;;
    *) fail "there is no archive for $(uname -m)" ;;
  esac
  name=understudy-@VERSION@-$os-$arch
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  trap 'exit 1' HUP INT TERM
  fetch "$url/SHA256SUMS" "$folder/SHA256SUMS"
  fetch "$url/$name.tar.gz" "$folder/$name.tar.gz"
  want=$(sed -n "s/^\([0-9a-f]\{64\}\)  $name\.tar\.gz\$/\1/p" "$folder/SHA256SUMS")
  [ -n "$want" ] || fail "SHA256SUMS of the release does not name $name.tar.gz; nothing was installed"
  if command -v sha256sum >/dev/null; then
    got=$(sha256sum "$folder/$name.tar.gz")
  else
    got=$(shasum -a 256 "$folder/$name.tar.gz")
  fi
  [ "${got%% *}" = "$want" ] || fail "the checksum of $name.tar.gz is ${got%% *}, and SHA256SUMS says $want; nothing was installed"
  tar -xzf "$folder/$name.tar.gz" -C "$folder"
  mkdir -p "$prefix/bin"
  cp -R "$folder/$name/share" "$prefix/"
  # A program that is running is replaced, not written over.
  cp "$folder/$name/bin/understudy" "$prefix/bin/.understudy.new"
  mv -f "$prefix/bin/.understudy.new" "$prefix/bin/understudy"
  "$prefix/bin/understudy" version
  echo "installed in $prefix/bin"
  case :$PATH: in
    *":$prefix/bin:"*) ;;
    *) echo "add $prefix/bin to your PATH" ;;
  esac
}

install_understudy
