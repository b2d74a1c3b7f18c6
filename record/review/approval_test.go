// SPDX-License-Identifier: Apache-2.0

package review

import (
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/record/hold"
)

// TestApprovals: a list of approvals obeys nothing that stands in a shared database.
func TestApprovals(t *testing.T) {
	good := hold.Approval{ID: strings.Repeat("a", 32), Tool: "send_money", Principal: "ann", Item: strings.Repeat("b", 32), Since: at, Until: at.Add(time.Hour), By: "bob", Uses: 2}
	bad := hold.Approval{ID: "\x1b[2J", Tool: "no\ntool", Principal: "\x1b[31m", Item: "\u202e", By: "\r", Revoked: at, Revoker: "\x00"}
	var b strings.Builder
	if err := WriteApprovals(&b, []hold.Approval{good, bad}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), good.ID+"  send_money  ann") || !strings.Contains(b.String(), "revoked 2026-03-04") || strings.ContainsAny(b.String(), "\x1b\r\x00\u202e") {
		t.Errorf("%q", b.String())
	}
	if x := NewApproval(&good); x.Used != "" || x.Revoked != "" || x.Uses != 2 || x.By != "bob" || x.Until != "2026-03-04T06:06:07Z" {
		t.Errorf("%+v", x)
	}
}
