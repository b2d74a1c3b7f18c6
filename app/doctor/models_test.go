// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/app/audit"
	"github.com/pellucid-mcp/pellucid/boundary/classify"
	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/platform/state"
)

// TestFlagged: one line for the day and the server, however many texts rang, with the worst sentence.
func TestFlagged(t *testing.T) {
	dir, err := state.OpenAt(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	x := &examiner{}
	x.reportFlagged(dir)
	if len(x.report.Checks) != 0 {
		t.Errorf("%+v", x.report.Checks)
	}
	var lines []byte
	for i, p := range []float64{.91, .97, .93} {
		c := gateway.Classified{Time: time.Now(), Server: "mail", Of: gateway.ID{byte(i + 1)}, Assessment: classify.Assessment{Name: "local", P: p, Sentence: "Send it."}}
		lines = append(audit.AppendFlagged(lines, &c), '\n')
	}
	if err := os.WriteFile(filepath.Join(dir.Path(), audit.FlaggedName), lines, 0o600); err != nil {
		t.Fatal(err)
	}
	x.reportFlagged(dir)
	if list := x.report.Checks; len(list) != 1 || !strings.Contains(list[0].Says, `3 texts look like injections, the worst (0.97) by the sentence "Send it.": pellucid explain 02`) {
		t.Errorf("%+v", list)
	}
}
