#!/bin/sh
# Usage: tools/packages.sh PACKAGE...
# Sees that system packages are there. As root on Debian it installs what is missing; elsewhere it
# prints the command that would. Status 1 means that some are still missing.
set -u

missing=
for package in "$@"; do
  if command -v dpkg-query >/dev/null; then
    case $(dpkg-query --show --showformat='${Status}' "$package" 2>/dev/null) in
      *' installed') continue ;;
    esac
  elif command -v "$package" >/dev/null; then
    continue
  fi
  missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null; then
  command -v brew >/dev/null && how="brew install$missing" || how="your system's installer"
elif [ "$(id -u)" -ne 0 ]; then
  how="sudo apt-get install --yes$missing"
else
  echo "installing system packages:$missing"
  export DEBIAN_FRONTEND=noninteractive
  # shellcheck disable=SC2086  # a list of words
  apt-get update -qq && apt-get install --yes -qq --no-install-recommends $missing >/dev/null && exit 0
  how="apt-get install --yes$missing"
fi
echo "system packages are missing:$missing. To install them: $how" >&2
exit 1
