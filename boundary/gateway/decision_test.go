// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

func TestDecisionLine(t *testing.T) {
	t.Parallel()
	d := Decision{
		ID: ID{0xab, 15: 1}, Time: time.Date(2026, 11, 21, 1, 2, 3, 4000, time.FixedZone("", 3600)),
		Server: "files", Tool: "read_file", Method: "tools/call", Kind: "result", Verdict: Changed,
		Received: frame.Digest{1}, Delivered: frame.Digest{2},
		Profile: "mcp", SanitationVersion: "0.1", UnicodeVersion: "15.0.0", Inspected: 3,
		Findings: []policy.Count{{Code: finding.HiddenTag, N: 12}, {Code: finding.NFKC, N: 1}}, NotInspected: []policy.Count{{Code: finding.BlobNotInspected, N: 1}},
	}
	want := `{"v":"0.1","id":"ab000000000000000000000000000001","time":"2026-11-21T00:02:03.000004Z","server":"files","tool":"read_file",` +
		`"method":"tools/call","kind":"result","verdict":"changed","received":"sha256:01` + strings.Repeat("0", 62) +
		`","delivered":"sha256:02` + strings.Repeat("0", 62) + `","profile":"mcp","sanitation_version":"0.1","unicode_version":"15.0.0",` +
		`"inspected":3,"findings":{"hidden-tag":12,"nfkc":1},"not_inspected":{"binary":1}}` + "\n"
	var b bytes.Buffer
	if err := NewLines(&b).Record(d); err != nil || b.String() != want {
		t.Errorf("%v\ngot  %swant %s", err, &b, want)
	}
	// Whatever is put into it, it stays one line of ASCII JSON.
	d.Server, d.Tool, d.Method = "a\"\n\u202e", "\x00", strings.Repeat("x", 1000)
	d.Findings = []policy.Count{{Code: "\"\n", N: 1}}
	line := d.AppendJSON(nil)
	if !json.Valid(line) || bytes.ContainsAny(line, "\n\x00") || strings.Contains(string(line), "\u202e") {
		t.Errorf("line %q", line)
	}
}

func TestLinesReportsFailure(t *testing.T) {
	t.Parallel()
	if err := NewLines(brokenWriter{}).Record(Decision{}); err == nil {
		t.Error("no error")
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("full") }
