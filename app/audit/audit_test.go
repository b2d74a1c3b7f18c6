// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/index"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/storage"
)

// log calls do with the log as it is.
func (u *usedLog) log(do func(context.Context, *storage.Ledger, *state.Dir) error) error {
	return install.Database(u.where).WithLog(do)
}

// TestFind: a record that waits is integrated and found; of an id that no record has, the
// journal and the queue are asked.
func TestFind(t *testing.T) {
	u := newUsedLog(t, filepath.Join(t.TempDir(), "p.db"))
	var known, unknown ledger.ID
	copy(unknown[:], "no record has it")
	must(t, u.log(func(ctx context.Context, l *storage.Ledger, dir *state.Dir) error {
		list, err := l.List(ctx, sequence.Filter{Limit: 1})
		must(t, err)
		known = list[0].ID
		if e, err := Find(ctx, l, dir, known); err != nil || e.Index != list[0].Index {
			t.Errorf("%d, %v", e.Index, err)
		}
		if n, err := l.Waiting(ctx, 10); err != nil || n != 6 {
			t.Errorf("%d records wait: %v", n, err)
		}
		if _, err := Find(ctx, l, dir, unknown); !errors.Is(err, errNoRecord) {
			t.Errorf("an unknown id: %v", err)
		}
		if n, err := l.Waiting(ctx, 10); err != nil || n != 0 { // what waited might have had the id
			t.Errorf("%d records wait after it: %v", n, err)
		}
		return nil
	}))
	dir, err := local.OpenState()
	must(t, err)
	db := install.Database(u.where)
	if x, err := look(dir, db, unknown); x != nil || err != nil {
		t.Errorf("%+v, %v", x, err)
	}
	held, err := ledger.ParseID(strings.Repeat("0", 31) + "1")
	must(t, err)
	x, err := look(dir, db, held)
	if err != nil || x == nil || x.Held == nil || x.Journal != nil {
		t.Fatalf("%+v, %v", x, err)
	}
	row := `{"id":"` + held.String() + `","time":"2026-03-04T05:06:07Z","server":"files","tool":"a b","method":"tools/call","kind":"result","verdict":"changed","findings":{"hidden-tag":2,"\u001b[2J":1}}`
	must(t, os.WriteFile(filepath.Join(dir.Path(), "decisions.jsonl"), []byte("no JSON "+held.String()+"\n"+row+"\n"), 0o600))
	var people, program strings.Builder
	both, err := look(dir, db, held)
	if err != nil || both == nil || both.Journal == nil || both.Held == nil {
		t.Fatalf("%+v, %v", both, err)
	}
	must(t, both.Write(&people))
	must(t, both.WriteJSON(&program))
	for _, want := range []string{"In the journal of this machine, not in a ledger:\n", "2026-03-04T05:06:07Z  result  files/other  changed  ", "found: hidden-tag 2\n",
		"In the queue: held. To read it: pellucid quarantine show " + held.String() + "\n"} {
		if !strings.Contains(people.String(), want) {
			t.Errorf("%q is missing of %q", want, people.String())
		}
	}
	if got := program.String(); !strings.HasPrefix(got, `{"journal":{"id":"`+held.String()) || strings.Contains(got, "2J") {
		t.Errorf("for a program: %s", got)
	}
	program.Reset()
	must(t, x.WriteJSON(&program))
	if want := `{"held":"held","id":"` + held.String() + "\"}\n"; program.String() != want {
		t.Errorf("%s, want %s", program.String(), want)
	}
}

// TestRows: the same records for a person and for a program.
func TestRows(t *testing.T) {
	u := newUsedLog(t, filepath.Join(t.TempDir(), "p.db"))
	must(t, u.log(func(ctx context.Context, l *storage.Ledger, _ *state.Dir) error {
		list, err := l.List(ctx, sequence.Filter{Limit: 3, Kind: ledger.ResultDenied})
		must(t, err)
		if len(list) != 1 {
			t.Fatalf("%d records", len(list))
		}
		for _, tt := range []struct {
			write func(*strings.Builder) error
			want  []string
			not   string
		}{
			{func(b *strings.Builder) error { return writeTable(b, list, false) }, []string{"INDEX  TIME", "  result-denied  files/read", list[0].ID.String()}, "found:"},
			{func(b *strings.Builder) error { return writeTable(b, list, true) }, []string{"rule: finding\n", "about: 00000000000000000000000000000003\n"}, "found"},
			{func(b *strings.Builder) error { return writeTable(b, nil, true) }, nil, "INDEX"},
			{func(b *strings.Builder) error { return writeRows(b, list, false) }, []string{`{"index":`, `"statement":{`}, "opening"},
			{func(b *strings.Builder) error { return writeRows(b, list, true) }, []string{`"opening":{`}, "\n\n"},
		} {
			var b strings.Builder
			must(t, tt.write(&b))
			for _, want := range tt.want {
				if !strings.Contains(b.String(), want) {
					t.Errorf("%q is missing of %q", want, b.String())
				}
			}
			if strings.Contains(b.String(), tt.not) {
				t.Errorf("%q is in %q", tt.not, b.String())
			}
		}
		list[0].Envelope = []byte("damaged")
		if err := writeTable(&strings.Builder{}, list, false); err == nil || !strings.HasPrefix(err.Error(), "record ") {
			t.Errorf("a damaged record: %v", err)
		}
		return nil
	}))
}

// TestLatestExport: what goes to others is signed by a key of the log, and is whole.
func TestLatestExport(t *testing.T) {
	u := newUsedLog(t, filepath.Join(t.TempDir(), "p.db"))
	must(t, u.log(func(ctx context.Context, l *storage.Ledger, _ *state.Dir) error {
		r, err := Latest(ctx, l)
		if err != nil || len(r.Keys) != 1 || r.Pending != 6 || !strings.HasPrefix(r.Checkpoint, "log.example/used\n") {
			t.Fatalf("%+v, %v", r, err)
		}
		keys, err := keysOf(ctx, l)
		must(t, err)
		for _, openings := range []bool{false, true} {
			to := filepath.Join(t.TempDir(), "log")
			n, err := Export(ctx, l, to, openings)
			if err != nil || n == 0 {
				t.Fatalf("%d files, %v", n, err)
			}
			got, err := ledger.VerifyExport(ctx, os.DirFS(to), ledger.VerifyOptions{Keys: keys})
			if err != nil || !got.OK() || got.Records != r.Size || (got.Openings > 0) != openings {
				t.Errorf("openings %v: %+v, %v", openings, got, err)
			}
			info, err := os.Stat(filepath.Join(to, "checkpoint"))
			must(t, err)
			if private := info.Mode().Perm()&0o077 == 0; runtime.GOOS != "windows" && private != openings {
				t.Errorf("openings %v: the mode is %v", openings, info.Mode())
			}
			_, err = Export(ctx, l, to, openings)
			if coded, ok := errors.AsType[*exit.Error](err); !ok || coded.Code != exit.Usage {
				t.Errorf("into a full directory: %v", err)
			}
		}
		return nil
	}))
	must(t, u.exec("UPDATE ledger_head SET checkpoint = 'unsigned'"))
	must(t, u.log(func(ctx context.Context, l *storage.Ledger, _ *state.Dir) error {
		if r, err := Latest(ctx, l); err == nil {
			t.Errorf("an unsigned checkpoint: %+v", r)
		}
		return nil
	}))
}

// TestReport: what a verification found, for a person.
func TestReport(t *testing.T) {
	for name, tt := range map[string]struct {
		r       ledger.Report
		waiting int
		want    string
	}{
		"holds": {ledger.Report{Checkpoint: &ledger.OpenedCheckpoint{Checkpoint: ledger.Checkpoint{Origin: "log.example/\u202e", Size: 2}}, Records: 2, Openings: 1, Erased: 1}, 1,
			"2 records of \"log.example/\\u202e\" are valid, with 1 opening.\n1 acknowledged record not signed yet.\n1 opening erased.\n"},
		"does not": {ledger.Report{Problems: []ledger.Problem{{Place: "the \x1bhead", Index: -1, Fault: "does not fit"}}, More: 3, NotChecked: []string{"a", "b"}}, 0,
			"the \u2039U+001B ESCAPE\u203ahead does not fit\nand 3 more\nThe log is not valid.\nNot checked: a; b.\n"},
	} {
		var b strings.Builder
		r := NewReport(&tt.r, tt.waiting)
		must(t, r.Write(&b))
		if b.String() != tt.want || r.OK != tt.r.OK() {
			t.Errorf("%s: %+q, want %+q", name, b.String(), tt.want)
		}
	}
}

// TestCodes: what a record found stands in the order of the codes.
func TestCodes(t *testing.T) {
	var b strings.Builder
	writeCodes(&b, "nothing", nil)
	writeCodes(&b, "found", map[string]int64{"zero-width": 1, "bidi": 12})
	if want := "found: bidi 12, zero-width 1\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

// TestOptions: what a person names for a verification, with the exit code of each mistake.
func TestOptions(t *testing.T) {
	u := newUsedLog(t, filepath.Join(t.TempDir(), "p.db"))
	dir := t.TempDir()
	file := func(name string, b []byte) string {
		name = filepath.Join(dir, name)
		must(t, os.WriteFile(name, b, 0o600))
		return name
	}
	var key, proof, older, export string
	must(t, u.log(func(ctx context.Context, l *storage.Ledger, _ *state.Dir) error {
		r, err := Latest(ctx, l)
		must(t, err)
		key, older, export = r.Keys[0], file("older", []byte(r.Checkpoint)), filepath.Join(dir, "export")
		p, err := ledger.Prove(ctx, l, 3)
		must(t, err)
		proof = file("proof", p.Bytes())
		_, err = Export(ctx, l, export, false)
		return err
	}))
	o, err := ParseOptions([]string{key}, nil, 0, []string{older})
	if err != nil || len(o.Keys) != 1 || len(o.Older) != 1 {
		t.Fatalf("%+v, %v", o, err)
	}
	if r, err := VerifyExport(export, o); err != nil || !r.OK() {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := VerifyExport(older, o); err == nil || !strings.HasPrefix(err.Error(), "ledger: open ") {
		t.Errorf("a file: %v", err)
	}
	if got, err := VerifyProof(proof, o); err != nil || got.Index != 3 || !got.Signed {
		t.Errorf("%+v, %v", got, err)
	}
	long := file("long", make([]byte, 1<<20+1))
	for _, name := range []string{older, long, filepath.Join(dir, "none")} {
		if _, err := VerifyProof(name, o); err == nil {
			t.Errorf("%s is a proof", name)
		}
	}
	for name, tt := range map[string]struct {
		keys, witnesses, older []string
		code                   int
	}{
		"a key":        {keys: []string{"no key"}, code: exit.Usage},
		"a witness":    {witnesses: []string{key + "x"}, code: exit.Usage},
		"a checkpoint": {older: []string{long}, code: exit.Failed},
	} {
		_, err := ParseOptions(tt.keys, tt.witnesses, 0, tt.older)
		code := exit.Failed
		if coded, ok := errors.AsType[*exit.Error](err); ok {
			code = coded.Code
		}
		if err == nil || code != tt.code {
			t.Errorf("%s: exit code %d: %v", name, code, err)
		}
	}
}

// TestRotate: another key of the state directory signs, and the log names both.
func TestRotate(t *testing.T) {
	u := newUsedLog(t, filepath.Join(t.TempDir(), "p.db"))
	must(t, u.log(func(ctx context.Context, l *storage.Ledger, dir *state.Dir) error {
		none := func() (*ledger.Signer, *ledger.Signer, error) { return nil, nil, nil }
		r, err := Rotate(ctx, l, dir, none)
		if err != nil {
			return err
		}
		keys, err := keysOf(ctx, l)
		must(t, err)
		if len(keys) != 2 || keys[1].String() != r.Key || r.Index == 0 {
			t.Errorf("%+v of %v", r, keys)
		}
		broken := errors.New("no such reference")
		if _, err := Rotate(ctx, l, dir, func() (*ledger.Signer, *ledger.Signer, error) { return nil, nil, broken }); !errors.Is(err, broken) {
			t.Errorf("a reference that is not there: %v", err)
		}
		return nil
	}))
	if code, out := u.verify(); code != 0 {
		t.Errorf("after it: exit code %d: %s", code, out)
	}
}

// TestShow: the records that a query names, wherever they stand.
func TestShow(t *testing.T) {
	u := newUsedLog(t, filepath.Join(t.TempDir(), "p.db"))
	db := install.Database(u.where)
	var denied string
	must(t, u.log(func(ctx context.Context, l *storage.Ledger, _ *state.Dir) error {
		list, err := l.List(ctx, sequence.Filter{Kind: ledger.ResultDenied})
		if err == nil {
			denied = list[0].ID.String()
		}
		return err
	}))
	queued := strings.Repeat("9", 32)
	for name, tt := range map[string]struct {
		q    Query
		n    int
		want string
		code int
	}{
		"a list":        {Query{Filter: index.Filter{Kinds: []ledger.Kind{ledger.ResultDenied}}}, 1, "INDEX  TIME", 0},
		"nothing":       {Query{Filter: index.Filter{Servers: []string{"unknown"}}}, 0, "", 0},
		"one":           {Query{ID: denied}, 1, "about: 00000000000000000000000000000003\n", 0},
		"for a program": {Query{ID: denied, JSON: true, Openings: true}, 1, `"opening":{`, 0},
		"in the queue":  {Query{ID: queued}, 1, "In the queue: held. To read it: pellucid quarantine show " + queued + "\n", 0},
		"queue as JSON": {Query{ID: queued, JSON: true}, 1, `{"held":"held","id":"` + queued + `"}`, 0},
		"no id":         {Query{ID: "ABC"}, 0, "", exit.Usage},
		"unknown":       {Query{ID: strings.Repeat("7", 32)}, 1, "", exit.Failed},
	} {
		var b strings.Builder
		n, err := tt.q.Show(db, &b)
		code := 0
		if coded, ok := errors.AsType[*exit.Error](err); ok {
			code = coded.Code
		} else if err != nil {
			code = exit.Failed
		}
		if code != tt.code || code == 0 && n != tt.n || !strings.Contains(b.String(), tt.want) || tt.want == "" && b.Len() > 0 {
			t.Errorf("%s: %d records, exit code %d, %v: %q", name, n, code, err, b.String())
		}
	}
	none := Query{ID: queued}
	if _, err := none.Show(install.Database(filepath.Join(t.TempDir(), "none.db")), &strings.Builder{}); !errors.Is(err, install.ErrNoLog) {
		t.Errorf("without a database: %v", err)
	}
}
