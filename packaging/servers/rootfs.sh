#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# rootfs.sh ARCH FILE: writes the system below the image in which servers run by npx and uvx start,
# as a tar file: Debian with Python, node and npm from npm, uv from PyPI, all at pinned versions.
# Needs mmdebstrap, npm and pip, and root or user namespaces. ARCH is amd64 or arm64; for another
# one than that of this machine, binfmt has to run its programs.
# SOURCE_DATE_EPOCH is the time of every file. SNAPSHOT, as 20261101T000000Z, names the state of Debian's
# archive to build from: the same state gives the same bytes. Without it, what is newest is taken.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
arch=$1 out=$2
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:?}
archive=http://deb.debian.org options=()
if [ -n "${SNAPSHOT:-}" ]; then
  archive=http://snapshot.debian.org/archive
  # The state is old by intent. Its signature is checked all the same.
  options=(--aptopt='Acquire::Check-Valid-Until "false"')
fi
case $arch in
  amd64) cpu=x64 machine=x86_64 ;;
  arm64) cpu=arm64 machine=aarch64 ;;
  *) echo "rootfs.sh: no image for $arch: want amd64 or arm64" >&2; exit 2 ;;
esac
command -v mmdebstrap >/dev/null || { echo "rootfs.sh: mmdebstrap is not installed" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/npm "$work"/uv "$work"/add/usr/local/{bin,lib/node_modules} "$work"/add/etc/uv

cp "$here"/package.json "$here"/package-lock.json "$work/npm"
npm --prefix "$work/npm" ci --ignore-scripts --no-audit --no-fund --loglevel=error --os=linux --cpu=$cpu
mv "$work/npm/node_modules/npm" "$work/npm/node_modules/node-linux-$cpu" "$work/add/usr/local/lib/node_modules"
rm -rf "$work"/add/usr/local/lib/node_modules/node-linux-$cpu/{include,share,CHANGELOG.md}
ln -s "../lib/node_modules/node-linux-$cpu/bin/node" "$work/add/usr/local/bin/node"
ln -s ../lib/node_modules/npm/bin/npm-cli.js "$work/add/usr/local/bin/npm"
ln -s ../lib/node_modules/npm/bin/npx-cli.js "$work/add/usr/local/bin/npx"

python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: --require-hashes \
  --platform manylinux2014_$machine --dest "$work/uv" -r "$here/requirements.txt"
python3 -m zipfile -e "$work"/uv/*.whl "$work/uv"
install -m 755 "$work"/uv/uv-*.data/scripts/{uv,uvx} "$work/add/usr/local/bin"
mkdir -p "$work/add/usr/local/share/python"
cp -r "$work"/uv/uv-*.dist-info "$work/add/usr/local/share/python"
# The Python of Debian is the one to use: uv would load another from the network.
printf 'python-downloads = "never"\npython-preference = "only-system"\n' >"$work/add/etc/uv/uv.toml"

chmod -R u=rwX,go=rX "$work/add"
tar --create --file "$work/add.tar" --directory "$work/add" --sort=name --owner=0 --group=0 --numeric-owner \
  --mtime="@$SOURCE_DATE_EPOCH" .
mmdebstrap --quiet --format=tar --variant=apt --architectures="$arch" --include=ca-certificates,libatomic1,python3 \
  --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
  --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
  --customize-hook="tar-in $work/add.tar /" \
  --customize-hook='echo "nonroot:x:65532:65532:nonroot:/var/cache/pellucid:/usr/sbin/nologin" >>"$1/etc/passwd"' \
  --customize-hook='echo "nonroot:x:65532:" >>"$1/etc/group"' \
  --customize-hook='rm -rf "$1"/var/log/* "$1"/var/cache/ldconfig "$1"/etc/machine-id "$1"/etc/hostname "$1"/etc/resolv.conf' \
  "${options[@]}" trixie "$out" \
  "deb $archive/debian${SNAPSHOT:+/$SNAPSHOT} trixie main" \
  "deb $archive/debian-security${SNAPSHOT:+/$SNAPSHOT} trixie-security main"
