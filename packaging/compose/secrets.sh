#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# secrets.sh NAME: makes the secrets of compose.yaml in the folder secrets, for the host name NAME: keys,
# passwords, the token of one principal, alice, and a certificate of its own (replace pellucid.pem by yours).
set -eu
cd "$(dirname "$0")"
umask 077
mkdir secrets
cd secrets
openssl rand -hex 32 >install-key
openssl rand -hex 32 >token-alice
openssl rand -hex 24 >postgres-password
printf 'postgres:5432:pellucid:pellucid:%s\n' "$(cat postgres-password)" >pgpass
printf '{"tokens": [{"principal": "alice", "scopes": ["mcp", "metrics:read", "servers:read"], "token": "file:/run/secrets/token-alice"}]}\n' >tokens.json
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 365 \
  -subj "/CN=$1" -addext "subjectAltName=DNS:$1" -keyout key.pem -out cert.pem 2>/dev/null
cat cert.pem key.pem >pellucid.pem
# Compose mounts secrets as the files that they are, and the programs in the containers run as users of
# their own (65532, haproxy): they read them as others. The folder keeps other users of this machine out.
chmod 644 install-key token-alice tokens.json pgpass postgres-password pellucid.pem
