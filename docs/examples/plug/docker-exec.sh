#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# For --interceptor=after:exec:/opt/pellucid/docker-exec.sh, where Pellucid asks for
# a token (scope plug), which after:http cannot send. A failure of curl fails the
# call: the result never passes unseen.
exec curl --fail --silent --show-error --max-time 30 \
  --header "Authorization: Bearer $PELLUCID_TOKEN" \
  --header "Content-Type: application/json" \
  --data-binary @- \
  "${PELLUCID_URL:-http://127.0.0.1:7420}/v1/interceptors/docker/after?server=docker"
