#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# generate.sh TIME: writes the manual pages of a package into packaging/generated: what --help prints, a page for each verb.
# TIME is that of the commit, as RFC 3339 writes it.
set -eu
cd "$(dirname "$0")"
rm -rf generated
mkdir -p generated/man
# The program runs here, so it is built for this system, whatever GOOS and GOARCH say.
(cd .. && GOOS='' GOARCH='' CGO_ENABLED=0 go build -trimpath -o packaging/generated/pellucid ./cmd/pellucid)
pellucid=generated/pellucid
time=$1
day=${1%%T*}

# roff reads a backslash, a hyphen, and a point or an apostrophe at the beginning of a line as something else.
verbatim() { sed -e 's/\\/\\e/g' -e 's/-/\\-/g' -e "s/^[.']/\\\\\&&/"; }

# page NAME VERB...: VERB is "" for the program, or the words of a verb. The first one says what the page is about.
page() {
  name=$1
  shift
  short=$($pellucid $1 --help | awk 'BEGIN { RS = "" } NR == 2 { gsub(/\n/, " "); sub(/\.$/, ""); print }' | verbatim)
  {
    printf '.TH "%s" 1 %s Pellucid "Pellucid Manual"\n.SH NAME\n%s \\- %s\n.SH DESCRIPTION\n.nf\n' "$name" "$day" "$name" "$short"
    for verb; do $pellucid $verb --help && echo; done | verbatim
    printf '.fi\n'
  } >"generated/man/$name.1"
}

$pellucid help all | sed -n 's/^  \([a-z][a-z ]*[a-z]\)  .*/\1/p' | sort -u >generated/verbs
page pellucid ""
for first in $(cut -d ' ' -f 1 generated/verbs | uniq); do
  set -- "$first"
  while read -r verb; do
    case $verb in "$first "*) set -- "$@" "$verb" ;; esac
  done <generated/verbs
  page "pellucid-$first" "$@"
done
for page in generated/man/*.1; do
  gzip -9 -n -c "$page" >"$page.gz"
done
# An apk has the time of the file of each script, which is when it was checked out.
touch -d "$time" scripts/*.sh
rm generated/pellucid generated/verbs
