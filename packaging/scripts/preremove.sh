#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Before the files are removed. The argument is "upgrade" (Debian) or 1 (RPM) where a newer
# version takes their place; then the service keeps running until that one is installed.
set -e
case "${1:-}" in
  upgrade | failed-upgrade | deconfigure | 1) exit 0 ;;
esac
if [ -d /run/systemd/system ]; then
  systemctl stop pellucid.service
fi
if command -v systemctl >/dev/null; then
  systemctl --no-reload --quiet disable pellucid.service
fi
