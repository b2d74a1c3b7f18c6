// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"database/sql"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// hostile is what somebody who may write to a database would like to write to a terminal.
var hostile = map[string]string{
	"escapes":  "a\x1b[31m\x1b]0;x\x07\rb\u202e\u200b\U000E0041",
	"rows":     "a\nFAKE  ROW\tb",
	"ill-form": "a\xff\xfe\xed\xa0\x80b",
	"nul":      "a\x00\x08\x08\x08b",
	"huge":     strings.Repeat("x", 256<<10),
}

// ran runs a verb and checks that what it prints is text of a moderate length in which
// nothing is hidden, and no row is made up.
func ran(t *testing.T, what string, args ...string) (code int, stdout string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(args, &env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Getenv: func(string) string { return "" }})
	for name, s := range map[string]string{"standard output": out.String(), "standard error": errs.String()} {
		raw := strings.IndexFunc(s, func(r rune) bool { return r != '\n' && (r < ' ' || ucd.Of(r)&ucd.Hidden != 0) })
		if raw >= 0 || !utf8.ValidString(s) {
			t.Errorf("%s: %s of %v is raw at %d: %+.200q", what, name, args, raw, s)
		}
		if len(s) > 16<<10 {
			t.Errorf("%s: %s of %v has %d bytes", what, name, args, len(s))
		}
		if strings.HasPrefix(s, "FAKE") || strings.Contains(s, "\nFAKE") {
			t.Errorf("%s: %s of %v has a row that is made up:\n%s", what, name, args, s)
		}
	}
	return code, out.String()
}

// TestTampered: whoever writes to a database does not write to the terminal of whoever
// reads it.
func TestTampered(t *testing.T) {
	const id = "49fc63623bc0f944a6b711fa51389cdb"
	dir := t.TempDir()
	path := filepath.Join(dir, "pellucid.db")
	t.Setenv("PELLUCID_STATE", dir)
	s, err := storage.Open(t.Context(), path, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	item := hold.Item{ID: id, Server: "files", Tool: "read", Principal: "lab-1", Rule: "hidden-tag", Code: finding.HiddenTag, Body: []byte(`{"content":[]}`)}
	block := hold.Block{ID: id, Server: "files", Tool: "read", Evidence: id, Severity: 500, Since: time.Now(), Until: time.Now().Add(time.Hour), By: "ann"}
	at, err := local.OpenState()
	if err != nil {
		t.Fatal(err)
	}
	kept := install.OpenRecords(s, at, &rules.Evidence{}, install.PollSeldom, slog.New(slog.DiscardHandler))
	err = hold.New(s, hold.Options{Evidence: kept.Held}).Hold(t.Context(), item)
	kept.Close()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Blocks().Add(t.Context(), block, 10, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	verbs := [][]string{
		{"quarantine", "list", "--state", "all"}, {"quarantine", "list", "--state", "all", "--json"}, {"quarantine", "show", id},
		{"quarantine", "show", id, "--json"}, {"quarantine", "list", "--of", "blocks", "--ended"}, {"quarantine", "list", "--of", "blocks", "--ended", "--json"},
	}
	for _, args := range verbs {
		if code, out := ran(t, "as it was", args...); code != 0 || !strings.Contains(out, id) {
			t.Fatalf("%v: exit code %d, %s", args, code, out)
		}
	}
	columns := map[string][]string{
		"held":   {"id", "server", "tool", "principal", "rule", "code", "call", "digest", "octets", "at", "until", "state", "decided", "decider"},
		"blocks": {"id", "server", "tool", "text", "evidence", "severity", "since", "until", "lifted", "lifter"},
	}
	for table, names := range columns {
		for _, column := range names {
			for kind, value := range hostile {
				var was any
				where := " WHERE " + column + " IS NOT NULL"
				if err := db.QueryRow("SELECT " + column + " FROM " + table + where).Scan(&was); err != nil {
					t.Fatal(err)
				}
				if _, err := db.Exec("UPDATE "+table+" SET "+column+" = ?", value); err != nil {
					t.Fatal(err)
				}
				for _, args := range verbs {
					if slices.Contains(args, "blocks") == (table == "blocks") {
						ran(t, table+"."+column+" "+kind, args...)
					}
				}
				if _, err := db.Exec("UPDATE "+table+" SET "+column+" = ?", was); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	ledgerTampered(t, db)
}

// ledgerTampered goes on with the log.
func ledgerTampered(t *testing.T, db *sql.DB) {
	if code, out := ran(t, "as it was", "ledger", "checkpoint"); code != 0 || strings.Count(out, "\n") != 5 {
		t.Fatalf("checkpoint: exit code %d, %s", code, out)
	}
	for kind, value := range hostile {
		if _, err := db.Exec("UPDATE ledger_head SET checkpoint = ?", []byte(value)); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"ledger", "checkpoint"}, {"ledger", "checkpoint", "--json"}, {"ledger", "verify"}, {"ledger", "show"}, {"trust", "--replay"}} {
			code, _ := ran(t, "checkpoint "+kind, args...)
			if len(args) > 1 && slices.Contains([]string{"checkpoint", "verify"}, args[1]) && code != exit.Failed {
				t.Errorf("%s: %v: exit code %d", kind, args, code)
			}
		}
	}
}

// TestInline: what stays on its line does.
func TestInline(t *testing.T) {
	for in, want := range map[string]string{
		"plain \u00e9": "plain \u00e9",
		"a\nb":         "a\u2039U+000A LINE FEED\u203ab",
		"a\tb":         "a\u2039U+0009 CHARACTER TABULATION\u203ab",
		"\x1b[2J":      "\u2039U+001B ESCAPE\u203a[2J",
		strings.Repeat("x", 511) + "\u00e9\u00e9": strings.Repeat("x", 511) + "\u2026 (+4 bytes)",
	} {
		if got := terminal.Inline(in); got != want {
			t.Errorf("inline(%+q) = %+q", in, got)
		}
	}
}
