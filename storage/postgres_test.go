// SPDX-License-Identifier: Apache-2.0

package storage_test

import "github.com/pellucid-mcp/pellucid/platform/pgtest"

// server starts once a test wants Postgres.
var server pgtest.Server
