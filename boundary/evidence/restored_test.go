// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"slices"
	"testing"

	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// TestRestored: the record of an answer says how many control tokens were restored in its request,
// with the digests of the request as it came and as it went.
func TestRestored(t *testing.T) {
	asked, sent := frame.Digest{1}, frame.Digest{2}
	e := Message(&gateway.Decision{Method: "tools/call", Kind: "result", Restored: 3, Asked: asked, Sent: sent})
	if !slices.Contains(e.Numbers, ledger.Number{Name: "restored", N: 3}) ||
		!slices.Contains(e.Subjects, ledger.Subject{Role: ledger.Asked, Digest: ledger.Digest(asked)}) ||
		!slices.Contains(e.Subjects, ledger.Subject{Role: ledger.Sent, Digest: ledger.Digest(sent)}) {
		t.Errorf("%+v", e)
	}
	if _, err := e.Seal(ledger.Salt{}); err != nil {
		t.Error(err)
	}
	if e := Message(&gateway.Decision{Method: "tools/call", Kind: "result"}); len(e.Numbers)+len(e.Subjects) > 0 {
		t.Errorf("%+v", e)
	}
}
