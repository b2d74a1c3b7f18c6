// SPDX-License-Identifier: Apache-2.0

package surface

import (
	"strings"
	"testing"
	"time"
)

func TestBeyond(t *testing.T) {
	list := func(s string) []string { return strings.Fields(s) }
	for _, tt := range []struct {
		uri, held, open string
		want            bool
	}{
		{"notes://1", "", "", false},
		{"notes://1", "", "notes://{id}", false},
		{"notes://1", "notes://{id}", "", true},
		{"notes://1", "notes://{id}", "files:///{+path}", true},
		{"notes://", "notes://{id}", "", true},
		{"other://1", "notes://{id}", "", false},
		// By another spelling.
		{"NOTES://1", "notes://{id}", "", true},
		{"n%6ftes://1", "notes://{id}", "", true},
		{"n%256Ftes://1", "notes://{id}", "", true},
		{"notes://a/b/c?d#e", "notes://{id}", "", true},
		{"notes://1", "notes:%2F%2F{id}", "", true},
		// Of several parts.
		{"db://a/rows/7", "db://{table}/rows/{row}", "", true},
		{"db://a/rows/7/x", "db://{table}/rows/{row}/y", "", false},
		{"db://a/cols/7", "db://{table}/rows/{row}", "", false},
		{"s://x?q=1", "s://x{?q,page}", "", true},
		{"aXbXc", "{a}X{b}X{c}", "", true},
		{"aXb", "{a}X{b}X{c}", "", false},
		{"exact://one", "exact://one", "", true},
		{"exact://one/two", "exact://one", "", false},
		{"broken://{x", "broken://{x", "", true},
		{"broken://anything", "broken://{x", "", true},
		// A wide template that waits takes nothing from a narrow one that does not; a
		// narrow one that waits is not within reach by a wide one.
		{"notes://1", "{+all}", "notes://{id}", false},
		{"files:///1", "{+all}", "notes://{id}", true},
		{"secret://1", "secret://{x}", "{+all}", true},
		{"notes://1", "notes://{+path}", "notes://{id}", false},
		{"notes://a/b", "notes://{+path}", "notes://{id}", true},
		{"Notes://1", "notes://{+path}", "notes://{id}", true},
		{"notes://1", "notes://{+path}", "notes://{id", true},
	} {
		if got := Beyond(tt.uri, list(tt.held), list(tt.open)); got != tt.want {
			t.Errorf("%s held %q open %q: %v, want %v", tt.uri, tt.held, tt.open, got, tt.want)
		}
	}
	if !Beyond("x:"+strings.Repeat("a", maxReached), []string{"notes://{id}"}, nil) {
		t.Error("a URI too long to be compared is within reach")
	}
}

// TestBeyondTime: the worst of templates against the worst of URIs.
func TestBeyondTime(t *testing.T) {
	held := make([]string, 1000)
	for i := range held {
		held[i] = strings.Repeat("{x}a", 2000) + "b"
	}
	began := time.Now()
	Beyond(strings.Repeat("a", maxReached), held, nil)
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}

// FuzzBeyond: what a template spells by the letter it fits by any reading.
func FuzzBeyond(f *testing.F) {
	f.Add("notes://{id}", "notes://1")
	f.Add("{+a}x{?b}", "%2561x")
	f.Add("{", "")
	f.Fuzz(func(t *testing.T, template, uri string) {
		if spells(template, uri) && len(uri) <= maxReached && !Beyond(uri, []string{template}, nil) {
			t.Errorf("%q spells %q and does not fit", template, uri)
		}
	})
}
