#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Before the files are unpacked, one of which belongs to this group: makes the user of the service.
set -e
if ! getent group pellucid >/dev/null; then
  if command -v groupadd >/dev/null; then groupadd --system pellucid; else addgroup -S pellucid; fi
fi
if ! getent passwd pellucid >/dev/null; then
  if command -v useradd >/dev/null; then
    useradd --system --gid pellucid --home-dir /var/lib/pellucid --no-create-home --shell /usr/sbin/nologin --comment Pellucid pellucid
  else
    adduser -S -D -H -h /var/lib/pellucid -s /sbin/nologin -g Pellucid -G pellucid pellucid
  fi
fi
