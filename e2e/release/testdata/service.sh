#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs as a service of a booted systemd: installs the package, starts the service under its unit,
# calls a tool through it, upgrades, removes and purges it.
set -eux
cd /
dpkg -i /release/pellucid.deb
test "$(systemctl is-enabled pellucid || true)" = disabled
test "$(systemctl is-active pellucid || true)" = inactive
systemd-analyze verify pellucid.service
mkdir -p /srv/notes
cp /release/server.sh /srv/notes/
cat >/etc/pellucid/pellucid.yaml <<'YAML'
version: 1
listen: 127.0.0.1:7420
servers:
  notes: {command: [sh, /srv/notes/server.sh]}
YAML
systemctl enable --now pellucid
curl -fsS --retry 60 --retry-delay 1 --retry-connrefused http://127.0.0.1:7420/readyz
pid=$(systemctl show -p MainPID --value pellucid)
test "$(stat -c %U "/proc/$pid")" = pellucid
grep -q '^NoNewPrivs:[[:space:]]*1$' "/proc/$pid/status"
grep -q '^CapEff:[[:space:]]*0*$' "/proc/$pid/status"

post() {
  curl -fsS -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' "$@" http://127.0.0.1:7420/mcp/notes
}
session=$(post -D - -o /dev/null -d '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"check","version":"1"}}}' |
  tr -d '\r' | sed -n 's/^[Mm]cp-[Ss]ession-[Ii]d: //p')
post -H "Mcp-Session-Id: $session" -d '{"jsonrpc":"2.0","method":"notifications/initialized"}'
answer=$(post -H "Mcp-Session-Id: $session" -d '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"read_note","arguments":{}}}')
case $answer in *"Meeting at ten."*) ;; *) exit 1 ;; esac
# The hidden text of the note is in tag characters, which begin with these bytes in UTF-8.
if printf '%s' "$answer" | LC_ALL=C grep -q "$(printf '\363\240\201')"; then exit 1; fi

systemctl reload pellucid
curl -fsS http://127.0.0.1:7420/healthz
test "$(systemctl show -p MainPID --value pellucid)" = "$pid"

# An upgrade restarts the service; its state stays.
dpkg -i --force-confold /release/pellucid.deb
curl -fsS --retry 60 --retry-delay 1 --retry-connrefused http://127.0.0.1:7420/readyz
test "$(systemctl show -p MainPID --value pellucid)" != "$pid"
test -n "$(ls -A /var/lib/pellucid)"

dpkg -r pellucid
test "$(systemctl is-active pellucid || true)" = inactive
test ! -e /etc/systemd/system/multi-user.target.wants/pellucid.service
dpkg -P pellucid
rm -r /srv/notes
echo 'service: done'
