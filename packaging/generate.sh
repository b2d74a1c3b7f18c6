#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# generate.sh TIME: writes the manual pages of a package into packaging/generated.
# TIME is that of the commit, as RFC 3339 writes it.
set -eu
cd "$(dirname "$0")"
rm -rf generated
mkdir -p generated/man
# The program runs here, so it is built for this system, whatever GOOS and GOARCH say.
(cd .. && GOOS='' GOARCH='' CGO_ENABLED=0 go build -trimpath -o packaging/generated/pellucid ./cmd/pellucid)
generated/pellucid manual --date "$1" generated/man
for page in generated/man/*.1; do
  gzip -9 -n -c "$page" >"$page.gz"
done
# An apk has the time of the file of each script, which is when it was checked out.
touch -d "$1" scripts/*.sh
rm generated/pellucid
