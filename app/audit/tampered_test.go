// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/platform/pgtest"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/index"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// A usedLog is a database with records in the log, records that wait and held results in
// every state.
type usedLog struct {
	t     *testing.T
	where string
	db    *sql.DB
}

func newUsedLog(t *testing.T, where string) *usedLog {
	t.Helper()
	t.Setenv("PELLUCID_STATE", t.TempDir())
	dir, err := local.OpenState()
	if err != nil {
		t.Fatal(err)
	}
	u := &usedLog{t: t, where: where}
	// A first process signs what it records.
	u.process(dir, true, func(kept *install.Records, s *storage.Store) {
		for i := range 300 {
			kept.Note(&ledger.Event{Kind: ledger.Message, Server: fmt.Sprint("s", i%3), Verdict: "passed"})
		}
		queue := hold.New(s, hold.Options{Evidence: kept.Held})
		for i, decide := range []func(string){
			func(string) {},
			func(id string) { must(t, queue.Release(context.Background(), id, "ann")) },
			func(id string) { must(t, queue.Deny(context.Background(), id, "ann")) },
		} {
			id := fmt.Sprintf("%032x", i+1)
			must(t, queue.Hold(context.Background(), hold.Item{ID: id, Server: "files", Tool: "read", Principal: "lab-1", Rule: "finding",
				Code: finding.HiddenTag, Call: hold.Digest{byte(i + 1)}, Body: []byte(`{"content":[]}`)}))
			decide(id)
		}
		decide(t, kept, s)
		two := hold.New(s, hold.Options{Evidence: kept.Held, TwoPersons: func() bool { return true }})
		for i, by := range [][]string{{"ann"}, {"ann", "bob"}} {
			id := fmt.Sprintf("%032x", i+100)
			must(t, two.Hold(context.Background(), hold.Item{ID: id, Server: "files", Rule: "finding", Code: finding.HiddenTag, Call: hold.Digest{byte(i + 100)}, Body: []byte(`{"content":[]}`)}))
			for _, person := range by {
				must(t, two.Release(context.Background(), id, person))
			}
		}
		must(t, kept.Seq.Flush(context.Background()))
		must(t, index.NewFollower(s.Ledger(), slog.New(slog.DiscardHandler)).Catch(context.Background(), nil))
	})
	// A second process acknowledges records that nobody signs yet.
	u.process(dir, false, func(kept *install.Records, s *storage.Store) {
		for range 5 {
			must(t, kept.Require(&ledger.Event{Kind: ledger.Message, Server: "later", Verdict: "passed"}))
		}
		must(t, hold.New(s, hold.Options{Evidence: kept.Held}).Hold(context.Background(), hold.Item{ID: strings.Repeat("9", 32), Server: "files",
			Rule: "finding", Code: finding.HiddenTag, Call: hold.Digest{9}, Body: []byte(`{"content":[]}`)}))
	})
	driver := "sqlite"
	if storage.IsPostgres(where) {
		driver = "pgx"
	}
	if u.db, err = sql.Open(driver, where); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { u.db.Close() })
	return u
}

// decide stores rows of every table that decides, in each of their states.
func decide(t *testing.T, kept *install.Records, s *storage.Store) {
	t.Helper()
	ctx := context.Background()
	approvals := hold.NewApprovals(s.Approvals(), hold.ApprovalOptions{Evidence: kept.Approval})
	for i := range 2 {
		a := hold.Approval{ID: hold.NewID(), Call: hold.Digest{byte(i + 1)}, Principal: "lab-1", Tool: "send", Item: fmt.Sprintf("%032x", i+1),
			Since: time.Now().UTC(), Until: time.Now().Add(time.Hour).UTC(), By: "ann"}
		record, err := kept.Approval(a)
		must(t, errors.Join(err, s.Approvals().Add(ctx, a, 10, record)))
		if i == 1 {
			must(t, approvals.Revoke(ctx, a.ID, "bob"))
		}
	}
	exceptions := hold.NewExceptions(s.Exceptions(), hold.ExceptionOptions{Evidence: kept.Exception})
	for i := range 4 { // granted, proposed, confirmed, revoked
		x, err := exceptions.Grant(ctx, hold.Exception{Server: "files", Tool: "read", Code: finding.HiddenTag, Digest: hold.Digest{byte(i + 1)}, Why: "tested", By: "ann"}, time.Hour, i == 1 || i == 2)
		must(t, err)
		switch i {
		case 2:
			_, err = exceptions.Confirm(ctx, x.ID, "bob")
		case 3:
			err = exceptions.Revoke(ctx, x.ID, "bob")
		}
		must(t, err)
	}
	blocks := hold.NewBlocks(s.Blocks(), hold.BlockOptions{Evidence: kept.Block})
	for i := range 2 {
		b := hold.Block{ID: hold.NewID(), Server: "files", Tool: "read", Text: hold.Digest{byte(i + 1)}, Evidence: hold.NewID(), Severity: 700}
		must(t, blocks.Add(ctx, b))
		if i == 1 {
			must(t, blocks.Lift(ctx, b.ID, "ann"))
		}
	}
	pins := surface.NewPins(s, nil).WithEvidence(kept.Pin)
	dump := func(description string) *surface.Surface {
		sf, err := surface.ParseDump([]byte(`{"initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "w", "version": "1"}},
			"tools/list": [{"tools": [{"name": "a", "description": "`+description+`", "inputSchema": {"type": "object"}}, {"name": "b", "inputSchema": {"type": "object"}}]}]}`), surface.Limits{})
		must(t, err)
		return sf
	}
	for _, server := range []string{"first", "decided"} {
		must(t, pins.Pin(ctx, server, "x", dump("one")))
	}
	_, err := pins.Admit(ctx, "decided", "x", dump("two"))
	must(t, err)
	tool := func(name string) (surface.Key, surface.Digest) {
		it, _ := dump("two").Item(surface.Key{Kind: surface.Tool, Name: name})
		return it.Key, it.Digest
	}
	k, d := tool("a")
	must(t, pins.Approve(ctx, "decided", k, d, "ann"))
	k, d = tool("b")
	must(t, pins.Block(ctx, "decided", k, d, "ann"))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// process plays a process that records; signs says whether it carries the log on.
func (u *usedLog) process(dir *state.Dir, signs bool, do func(*install.Records, *storage.Store)) {
	u.t.Helper()
	s, err := install.Database(u.where).Open(context.Background(), dir, true)
	must(u.t, err)
	defer s.Close()
	kept := install.OpenRecords(s, dir, &rules.Evidence{Mode: rules.Required, Origin: "log.example/used"}, time.Hour, slog.New(slog.DiscardHandler))
	if !signs {
		kept.Stop() // before anything waits
		<-kept.Done
	}
	do(kept, s)
	if signs {
		must(u.t, kept.Seq.Flush(context.Background())) // Close does not wait for a slow database
		kept.Close()
		return
	}
	kept.Recorder.Close(context.Background())
}

// verify verifies the stored log, and returns the exit code of the verb and what it prints.
func (u *usedLog) verify() (int, string) { return u.verifyWith(Options{}) }

func (u *usedLog) verifyWith(o Options) (code int, out string) {
	var b bytes.Buffer
	err := install.Database(u.where).WithLog(func(ctx context.Context, l *storage.Ledger, dir *state.Dir) error {
		r, waiting, err := Verify(ctx, l, dir, o)
		if err != nil {
			return err
		}
		if !r.OK() {
			code = exit.Failed
		}
		return NewReport(r, waiting).Write(&b)
	})
	if coded, ok := errors.AsType[*exit.Error](err); ok {
		return coded.Code, err.Error()
	} else if err != nil {
		return exit.Failed, err.Error()
	}
	return code, b.String()
}

// A change is undone by putting the table's rows back as they were.
func (u *usedLog) tampered(what, statement, table string, args ...any) {
	u.t.Helper()
	must(u.t, u.exec("CREATE TABLE kept AS SELECT * FROM "+table))
	if storage.IsPostgres(u.where) {
		statement = strings.Replace(strings.Replace(statement, "?", "$1", 1), "?", "$2", 1)
	}
	if err := u.exec(statement, args...); err == nil { // a constraint may refuse the change
		if code, out := u.verify(); code != exit.Failed {
			u.t.Errorf("%s: exit code %d: %.400s", what, code, out)
		}
	} else if !strings.Contains(strings.ToLower(err.Error()), "constraint") {
		u.t.Errorf("%s: %v", what, err)
	}
	must(u.t, u.exec("DELETE FROM "+table))
	override := ""
	if storage.IsPostgres(u.where) && table == "ledger_pending" {
		override = "OVERRIDING SYSTEM VALUE "
	}
	must(u.t, u.exec("INSERT INTO "+table+" "+override+"SELECT * FROM kept"))
	must(u.t, u.exec("DROP TABLE kept"))
}

func (u *usedLog) exec(statement string, args ...any) error {
	_, err := u.db.Exec(statement, args...)
	return err
}

// texts are the values of an expression over a table.
func (u *usedLog) texts(query string) (out []string) {
	u.t.Helper()
	rows, err := u.db.Query(query)
	must(u.t, err)
	defer rows.Close()
	for rows.Next() {
		var s string
		must(u.t, rows.Scan(&s))
		out = append(out, s)
	}
	return out
}

// tamperedColumns are the columns of each table of the log, with a key that names a row.
// Not among them: ledger_pending.seq, whose order is tested apart, and the three columns of
// the lease in ledger_head that say nothing of the log (holder, fence, beat).
var tamperedColumns = []struct {
	table, key string
	columns    []string
}{
	{"ledger_pending", "wseq", []string{"record", "writer", "wseq", "prev", "mac"}},
	{"ledger_writers", "writer", []string{"writer", "wseq", "tag"}},
	{"ledger_chain", "wseq", []string{"writer", "wseq", "idx", "mac"}},
	{"ledger_entries", "idx", []string{"idx", "id", "at", "server", "kind", "opening"}},
	{"ledger_leaves", "idx", []string{"idx", "envelope"}},
	{"ledger_tiles", "n", []string{"level", "n", "hashes"}},
	{"ledger_head", "one", []string{"origin", "signer", "size", "checkpoint"}},
	{"held", "id", []string{"id", "server", "tool", "principal", "rule", "code", "call", "digest", "octets", "body", "at", "until", "state", "decided", "decider", "people", "proposed", "proposer"}},
	{"approvals", "id", []string{"call", "principal", "tool", "item", "since", "until", "approver", "revoked", "revoker"}},
	{"exceptions", "id", []string{"id", "server", "tool", "code", "digest", "since", "until", "granter", "revoked", "revoker", "second", "keep"}},
	{"blocks", "id", []string{"server", "tool", "text", "evidence", "severity", "since", "until", "lifted", "lifter"}},
	{"pins", "server", []string{"server", "record"}},
	{"decisions", "idx", []string{"idx", "at", "grp", "id", "about", "reason", "codes"}},
}

// TestVerifyTampered changes every column and removes every row of the tables of a
// log, one at a time: Verify finds each.
func TestVerifyTampered(t *testing.T) {
	var server pgtest.Server
	t.Cleanup(server.Stop)
	for name, where := range map[string]func(t *testing.T) string{
		"sqlite":   func(t *testing.T) string { return filepath.Join(t.TempDir(), "p.db") },
		"postgres": func(t *testing.T) string { return server.Database(t) },
	} {
		t.Run(name, func(t *testing.T) {
			u := newUsedLog(t, where(t))
			if code, out := u.verify(); code != 0 || !strings.Contains(out, "6 acknowledged records not signed yet") {
				t.Fatalf("as it was: exit code %d: %s", code, out)
			}
			tamperAll(t, u)
			if code, out := u.verify(); code != 0 {
				t.Errorf("in the end: exit code %d: %s", code, out)
			}
		})
	}
}

func tamperAll(t *testing.T, u *usedLog) {
	for _, c := range tamperedColumns {
		keys := u.texts("SELECT " + c.key + " FROM " + c.table + " ORDER BY 1")
		if len(keys) == 0 {
			t.Fatalf("%s is empty", c.table)
		}
		some := keys
		if len(keys) > 6 {
			some = []string{keys[0], keys[1], keys[len(keys)/2], keys[len(keys)-1]}
		}
		for i, key := range some {
			where := " WHERE CAST(" + c.key + " AS text) = '" + key + "'"
			u.tampered(c.table+": row "+key+" removed", "DELETE FROM "+c.table+where, c.table)
			if i > 0 && i < len(some)-1 {
				continue
			}
			for _, column := range c.columns {
				for _, to := range tampers(u, c.table, column, where) {
					u.tampered(fmt.Sprintf("%s.%s of row %s to %s", c.table, column, key, to), "UPDATE "+c.table+" SET "+column+" = "+to+where, c.table)
				}
			}
		}
	}
	// Two records that wait change their places.
	for _, swap := range []string{"UPDATE ledger_pending SET seq = -seq", "UPDATE ledger_pending SET seq = 1000 - seq"} {
		if !storage.IsPostgres(u.where) { // there the database refuses to change it
			u.tampered("order: "+swap, swap, "ledger_pending")
		}
	}
	for _, table := range []string{"ledger_pending", "ledger_writers", "ledger_chain", "ledger_entries", "ledger_leaves", "ledger_tiles", "ledger_head"} {
		u.tampered("all of "+table, "DELETE FROM "+table, table)
	}
	for i, code := range u.texts("SELECT DISTINCT codes FROM decisions WHERE codes <> '' ORDER BY 1") {
		name, _, _ := strings.Cut(code, " ")
		value := strconv.FormatInt(index.CodeValue(finding.Code(name)), 10)
		u.tampered("records with "+name+" are not found", "DELETE FROM decision_keys WHERE key = "+value, "decision_keys")
		u.tampered("records with "+name+" are found by another code", "UPDATE decision_keys SET key = "+strconv.Itoa(i)+" WHERE key = "+value, "decision_keys")
	}
	// Rows that belong to no record.
	u.tampered("a leaf behind the log", "INSERT INTO ledger_leaves SELECT idx + 100000, envelope FROM ledger_leaves WHERE idx = 1", "ledger_leaves")
	u.tampered("a row behind the log", "INSERT INTO ledger_entries SELECT idx + 100000, ?, at, server, kind, opening FROM ledger_entries WHERE idx = 1", "ledger_entries", []byte("0123456789abcdef"))
	u.tampered("a tile behind the log", "INSERT INTO ledger_tiles SELECT level, n + 1000, hashes FROM ledger_tiles WHERE level = 0 AND n = 0", "ledger_tiles")
	u.tampered("a held result without a record", "INSERT INTO held (id, server, tool, principal, rule, code, call, digest, octets, body, at, until, state, decided, decider) SELECT '"+strings.Repeat("8", 32)+"', server, tool, principal, rule, code, call, digest, octets, body, at, until, state, decided, decider FROM held WHERE state = 'held' AND principal = ''", "held")
}

// tampers are expressions of other values of a column.
func tampers(u *usedLog, table, column, where string) []string {
	kind := u.texts("SELECT CASE WHEN " + column + " IS NULL THEN 'null' ELSE CAST(" + typeOf(u, column) + " AS text) END FROM " + table + where + " LIMIT 1")
	switch {
	case kind[0] == "null" && storage.IsPostgres(u.where):
		return []string{`'\x41'`}
	case kind[0] == "null":
		return []string{"x'41'"}
	case strings.HasPrefix(kind[0], "int"), kind[0] == "bigint":
		return []string{column + " + 1", column + " - 1"}
	case kind[0] == "text":
		return []string{column + " || 'x'", "'2026-01-01T00:00:00'"}
	case storage.IsPostgres(u.where) && kind[0] == "bytea":
		return []string{column + ` || '\x00'`, `'\x41'`}
	}
	return []string{"CAST(" + column + " || x'00' AS blob)", "x'41'"}
}

func typeOf(u *usedLog, column string) string {
	if storage.IsPostgres(u.where) {
		return "pg_typeof(" + column + ")"
	}
	return "typeof(" + column + ")"
}

// TestVerifyRemembers puts an earlier copy of a database back: without being told of
// a backup, Verify finds the rollback.
func TestVerifyRemembers(t *testing.T) {
	where := filepath.Join(t.TempDir(), "p.db")
	u := newUsedLog(t, where)
	dir, err := local.OpenState()
	must(t, err)
	u.db.Close()
	if code, out := u.verify(); code != 0 || !strings.Contains(out, "no earlier checkpoint is remembered") {
		t.Fatalf("first: exit code %d: %s", code, out)
	}
	copyOf := func() []byte { // the last process has closed it: one file has all
		b, err := os.ReadFile(where)
		must(t, err)
		return b
	}
	before := copyOf()
	u.process(dir, true, func(kept *install.Records, _ *storage.Store) {
		must(t, kept.Require(&ledger.Event{Kind: ledger.Message, Server: "more", Verdict: "passed"}))
	})
	if code, out := u.verify(); code != 0 || strings.Contains(out, "no earlier checkpoint") {
		t.Fatalf("grown: exit code %d: %s", code, out)
	}
	after := copyOf()
	must(t, os.WriteFile(where, before, 0o600))
	if code, out := u.verify(); code != exit.Failed || !strings.Contains(out, "records were removed since it was last verified") {
		t.Errorf("rolled back: exit code %d: %s", code, out)
	}
	must(t, os.WriteFile(where, after, 0o600))
	if code, out := u.verify(); code != 0 {
		t.Errorf("put back: exit code %d: %s", code, out)
	}
	must(t, os.WriteFile(where, before, 0o600))
	if code, out := u.verifyWith(Options{Restored: true}); code != 0 {
		t.Errorf("restored: exit code %d: %s", code, out)
	}
	if code, out := u.verify(); code != 0 {
		t.Errorf("after it: exit code %d: %s", code, out)
	}
}

// TestAlteredIsNotSigned changes a record that waits. The next process that signs
// leaves it out and says so in the log, and the gap stays visible.
func TestAlteredIsNotSigned(t *testing.T) {
	u := newUsedLog(t, filepath.Join(t.TempDir(), "p.db"))
	dir, err := local.OpenState()
	must(t, err)
	must(t, u.exec("UPDATE ledger_pending SET record = (SELECT record FROM ledger_pending WHERE wseq = 3 ORDER BY seq LIMIT 1) WHERE seq = (SELECT min(seq) FROM ledger_pending WHERE wseq = 2)"))
	u.process(dir, true, func(*install.Records, *storage.Store) {})
	code, out := u.verify()
	if code != exit.Failed || !strings.Contains(out, "acknowledged record 2 of writer") || !strings.Contains(out, "is missing") {
		t.Errorf("exit code %d: %s", code, out)
	}
	var shown bytes.Buffer
	must(t, install.Database(u.where).WithIntegratedLog(func(ctx context.Context, l *storage.Ledger, _ *state.Dir) error {
		list, err := l.List(ctx, sequence.Filter{Kind: ledger.RecordsLost})
		if err != nil {
			return err
		}
		return writeTable(&shown, list, false)
	}))
	if !strings.Contains(shown.String(), "unreadable") {
		t.Errorf("the log does not tell of it: %s", &shown)
	}
}
