#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# After the files are removed. "apt purge" also deletes what the service has stored, and its user.
# The other package managers have no such step: there the state stays.
set -e
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
fi
if [ "${1:-}" = purge ]; then
  rm -rf /var/lib/pellucid /var/cache/pellucid
  if getent passwd pellucid >/dev/null; then userdel pellucid; fi
  if getent group pellucid >/dev/null; then groupdel pellucid; fi
fi
