// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/record/index"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/storage"
)

// TestChange: a share has changed if it has doubled or halved, and chance does not explain it.
func TestChange(t *testing.T) {
	for _, x := range []struct {
		later, judged, before, judgedBefore int64
		want                                Change
	}{
		{0, 0, 0, 0, Unknown},
		{99, 99, 0, 10_000, Unknown},
		{50, 1000, 1, 99, Unknown},
		{20, 1000, 40, 4000, Same}, // doubled, and the intervals overlap
		{60, 1000, 40, 4000, More},
		{0, 1000, 0, 4000, Same},
		{15, 10_000, 10_000, 40_000, Less},
		{0, 400, 40, 4000, Same}, // too few to be sure
		{0, 1000, 40, 4000, Less},
		{150, 1000, 400, 4000, Same},
		{1000, 1000, 4000, 4000, Same},
		{1000, 1000, 0, 4000, More},
	} {
		r := rowOf(storage.JudgedSum{Judged: x.judged, Flagged: x.later}, storage.JudgedSum{Judged: x.judgedBefore, Flagged: x.before})
		if r.Change != x.want {
			t.Errorf("%d of %d after %d of %d: %s, want %s (%v, %v)", x.later, x.judged, x.before, x.judgedBefore, r.Change, x.want, r.Later, r.Before)
		}
	}
}

// TestRead: the spans end where they should, a server that the person may not see is left out, and
// what is printed says what is compared.
func TestRead(t *testing.T) {
	s, err := storage.Open(t.Context(), filepath.Join(t.TempDir(), "x.db"), storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	now := time.Date(2026, 5, 20, 13, 0, 0, 0, time.UTC)
	at := int64(0)
	add := func(day, n int, server, verdict string) {
		rows := make([]index.Row, n)
		for i := range rows {
			rows[i] = index.Row{Index: at + int64(i), Time: now.AddDate(0, 0, -day), Kind: ledger.Classified, Server: server,
				Judged: []index.Judged{{Classifier: "local", Flagged: verdict == "suspected"}}}
		}
		if err := s.Ledger().Index(t.Context(), at, rows); err != nil {
			t.Fatal(err)
		}
		at += int64(n)
	}
	add(0, 30, "mail", "suspected")
	add(6, 170, "mail", "benign")
	add(7, 1, "mail", "suspected")
	add(34, 399, "mail", "benign")
	add(35, 500, "mail", "suspected") // beyond
	add(1, 5, "files", "benign")
	add(1, 5, "secret", "benign")
	var r *Report
	if err := s.Ledger().View(t.Context(), func(v *storage.View) (err error) {
		r, err = Read(v, now, func(server string) bool { return server != "secret" })
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != 2 || r.Rows[0].Server != "files" || r.Rows[0].Change != Unknown {
		t.Fatalf("%+v", r.Rows)
	}
	if m := r.Rows[1]; m.Later.Judged != 200 || m.Later.Flagged != 30 || m.Before.Judged != 400 || m.Before.Flagged != 1 || m.Change != More {
		t.Errorf("%+v", m)
	}
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"from 2026-05-14 on", "mail", "15.0 % [10.7, 20.6]", "more", "not enough records"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing:\n%s", want, &b)
		}
	}
}

// TestReadLog: verdicts are counted from the records of a real log, whether they have a record of their own or not.
func TestReadLog(t *testing.T) {
	st := &ledger.Statement{Event: ledger.Event{Kind: ledger.Message, Versions: []ledger.Version{{Of: "classifier:local", Version: "1"}, {Of: "policy", Version: "2"}}}}
	if got := index.RowOf(0, st, nil).Judged; len(got) != 1 || got[0] != (index.Judged{Classifier: "local"}) {
		t.Errorf("in the record of a message: %v", got)
	}
	for verdict, want := range map[string]int{"injection": 1, "suspected": 1, "benign": 1, "not-judged": 0, "skipped": 0, "dropped": 0, "": 0} {
		st := &ledger.Statement{Event: ledger.Event{Kind: ledger.Classified, Of: ledger.ID{1}, Rule: "classifier:own", Verdict: verdict}}
		if got := index.RowOf(0, st, nil).Judged; len(got) != want || want == 1 && (got[0].Classifier != "own" || got[0].Flagged != (verdict != "benign")) {
			t.Errorf("%s: %v", verdict, got)
		}
		st.Of = ledger.ID{}
		if got := index.RowOf(0, st, nil).Judged; len(got) != 0 {
			t.Errorf("%s about no recorded message: %v", verdict, got)
		}
	}
}
