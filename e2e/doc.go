// SPDX-License-Identifier: Apache-2.0

// Package e2e puts the real binary between real clients and real servers of
// others: the reference servers and the Inspector from npm, and the Go SDK.
//
// The npm packages are pinned in node/package-lock.json; `make e2e` installs
// them into ../.tools/e2e. Tests that need them skip where they are absent;
// tests against the small hostile servers of this package need nothing but Go.
//
//	PELLUCID_E2E       fail, do not skip, where the npm packages are absent
//	PELLUCID_E2E_NODE  where they are, if elsewhere
//	PELLUCID_E2E_BIN   the binary to test, if not one built from this tree
package e2e
