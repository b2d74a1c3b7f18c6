#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# After the files are unpacked. A service that runs is restarted with the new program; a first
# installation starts nothing, since its configuration has no servers yet.
set -e
if [ ! -e /var/lib/pellucid ]; then
  mkdir -m 0700 /var/lib/pellucid
  chown pellucid:pellucid /var/lib/pellucid
fi
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  systemctl try-restart pellucid.service || echo "pellucid: the service did not restart: see journalctl -u pellucid" >&2
fi
