// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"errors"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/grounding/demonstration"
)

// TestReport: what is told of every kind of entry, for people and for programs, and what the
// summary counts.
func TestReport(t *testing.T) {
	good := demonstration.Attestations()[0]
	entries := []struct {
		body []byte
		err  error
	}{
		{good, nil},
		{good, nil},
		{[]byte(`{"a":`), nil},
		{nil, &EntryError{Line: 4, Pointer: "/\x1b\u202e", Code: "misshapen"}},
		{[]byte(`{"\u202e\u001b":1}`), nil},
	}
	for _, c := range []struct {
		json bool
		want []string
	}{
		{false, []string{
			`not-json entry 3 at "", byte 5`,
			`misshapen entry 4: line 4 at `,
			`missing-member entry 5 at "`,
		}},
		{true, []string{
			`{"entry":1,"accepted":true,"hash":"sha256:`,
			`{"entry":2,"accepted":false,"code":"duplicate",`,
			`{"entry":3,"accepted":false,"code":"not-json","offset":5}`,
			`{"entry":4,"accepted":false,"code":"misshapen","pointer":"/\u001b\u202e","why":"line 4 at `,
			`{"entry":5,"accepted":false,"code":"missing-member","pointer":"`,
		}},
	} {
		var out, sum strings.Builder
		im := New(newAdapter(t), &out, c.json)
		err := im.Run(t.Context(), func(yield func([]byte, error) bool) {
			for _, e := range entries {
				if !yield(e.body, e.err) {
					return
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if len(lines) != len(c.want) {
			t.Fatalf("%d lines, want %d:\n%s", len(lines), len(c.want), out.String())
		}
		for i, want := range c.want {
			if !strings.HasPrefix(lines[i], want) {
				t.Errorf("line %s, want %s", lines[i], want)
			}
		}
		if strings.ContainsAny(out.String(), "\x1b\u202e") {
			t.Errorf("raw characters: %+q", out.String())
		}
		im.Summary(&sum, true)
		for _, want := range []string{"Interrupted: ", "5 entries in ", ": 1 stored, 1 there already, 3 refused.\n", "\n    misshapen                1\n", "not-json"} {
			if !strings.Contains(sum.String(), want) {
				t.Errorf("the summary does not say %q:\n%s", want, sum.String())
			}
		}
		if im.Refused() != 3 || !strings.HasPrefix(im.Progress(), "5 stored or refused, ") {
			t.Errorf("%d refused, %s", im.Refused(), im.Progress())
		}
	}
}

// TestWriteFails: an output that takes no more ends the import with its error.
func TestWriteFails(t *testing.T) {
	if err := New(newAdapter(t), full{}, true).Run(t.Context(), entries); !errors.Is(err, errFull) || !strings.HasPrefix(err.Error(), "ground: write: ") {
		t.Errorf("error %v", err)
	}
}

var errFull = errors.New("no space left")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }
