#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs in a container without systemd: installs the package, uses it, removes and purges it.
set -eux
cd /
dpkg -i /release/pellucid.deb
test "$(stat -c %U:%G:%a /etc/pellucid/pellucid.yaml)" = root:pellucid:640
test "$(stat -c %U:%G:%a /var/lib/pellucid)" = pellucid:pellucid:700
test "$(getent passwd pellucid | cut -d: -f6-)" = /var/lib/pellucid:/usr/sbin/nologin
test ! -e /etc/systemd/system/multi-user.target.wants/pellucid.service
pellucid version
test -n "$(dpkg-query -f '${db:Status-Abbrev}' -W pellucid | grep ii)"
dpkg --verify pellucid
case "$(dpkg-query -f '${Conffiles}' -W pellucid)" in *" /etc/pellucid/pellucid.yaml "*) ;; *) exit 1 ;; esac

# As the service does. The verbs beside it run as its user too.
as_service='setpriv --reuid=pellucid --regid=pellucid --clear-groups env -i PATH=/usr/bin:/bin HOME=/var/lib/pellucid PELLUCID_STATE=/var/lib/pellucid'
$as_service pellucid doctor -c /etc/pellucid/pellucid.yaml
$as_service pellucid up -c /etc/pellucid/pellucid.yaml &
pid=$!
curl -fsS --retry 60 --retry-delay 1 --retry-connrefused http://127.0.0.1:7420/readyz
kill "$pid"
wait "$pid" # a signal ends it well
test -n "$(ls -A /var/lib/pellucid)"

# What the operator has written stays, through an upgrade and through a removal.
echo '# changed by the operator' >>/etc/pellucid/pellucid.yaml
dpkg -i /release/pellucid.deb
grep -q '^# changed by the operator' /etc/pellucid/pellucid.yaml
dpkg -r pellucid
test ! -e /usr/bin/pellucid
grep -q '^# changed by the operator' /etc/pellucid/pellucid.yaml
test -n "$(ls -A /var/lib/pellucid)"
dpkg -P pellucid
test -z "$(getent passwd pellucid)$(getent group pellucid)"
