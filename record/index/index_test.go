// SPDX-License-Identifier: Apache-2.0

package index

import (
	"crypto/sha256"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

var now = time.Date(2026, 4, 25, 12, 0, 0, 0, time.UTC)

var (
	hex32 = "000102030405060708090a0b0c0d0e0f"
	hex64 = hex32 + hex32
)

func TestParse(t *testing.T) {
	ann := ledger.Digest(sha256.Sum256([]byte("Ann Lee")))
	for text, want := range map[string]Filter{
		"":                                      {},
		"  ":                                    {},
		"server:mail code:hidden-tag since:24h": {Servers: []string{"mail"}, Code: finding.HiddenTag, Since: now.Add(-24 * time.Hour)},
		"verdict:changed,withheld  tool:a/b":    {Verdicts: []string{"changed", "withheld"}, Tools: []string{"a/b"}},
		`principal:"Ann Lee"`:                   {Principal: ann},
		`by:"Ann\ Lee" kind:message`:            {By: ann, Kinds: []ledger.Kind{ledger.Message}},
		`principal:a"b`:                         {Principal: sha256.Sum256([]byte(`a"b`))},
		hex32:                                   {ID: ledger.ID{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
		"of:" + hex32:                           {Of: ledger.ID{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
		"until:2026-01-02T03:04:05.5Z":          {Until: time.Date(2026, 1, 2, 3, 4, 5, 500_000_000, time.UTC)},
	} {
		got, err := Parse(text, now)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
	for _, text := range []string{"mail", "server:", "server:a server:b", "what:x", `server:"a`, `server:"a"b`, `"server":a`, "server:a,,b", "server:a\u202eb",
		"kind:nothing", "verdict:held", "verdict:passed,held", "digest:" + hex32, "digest:" + strings.ToUpper(strings.Replace(hex64, "0a", "aa", 1)), "digest:" + strings.Repeat("0", 64), "id:" + strings.Repeat("0", 32), "id:x",
		"since:yesterday", "since:99999-01-01T00:00:00Z", "code:a,b", "principal:sha256:00", strings.Repeat("x", maxText+1), "server:" + strings.Repeat("a,", maxValues) + "a"} {
		if f, err := Parse(text, now); err == nil {
			t.Errorf("%q is read as %+v", text, f)
		} else if strings.ContainsRune(err.Error(), '\u202e') || len(err.Error()) > 300 {
			t.Errorf("%q: the error is %q", text, err)
		}
	}
}

// TestString: the text form is read as the same filter.
func TestString(t *testing.T) {
	f, err := Parse("server:a,b tool:t kind:message,result-held verdict:passed code:bidi principal:x by:y digest:"+hex64+" id:"+hex32+" of:"+hex32+" since:1h until:2026-04-25T12:00:00.000000001+01:00", now)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse(f.String(), now.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(f, again); diff != "" {
		t.Error(diff)
	}
	for _, name := range Terms {
		if !strings.Contains(" "+f.String(), " "+name+":") {
			t.Errorf("%s is missing of %s", name, f.String())
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("server:mail code:hidden-tag since:24h")
	f.Add(`principal:"Ann \"Lee\\" by:sha256:` + hex64 + " until:2026-04-25T12:00:00.5+02:00")
	f.Add("verdict:changed,withheld kind:message tool:a/b:c@d of:" + hex32)
	f.Add(hex32)
	f.Fuzz(func(t *testing.T, text string) {
		one, err := Parse(text, now)
		if err != nil {
			if len(err.Error()) > 1000 {
				t.Fatalf("the error has %d bytes", len(err.Error()))
			}
			return
		}
		again, err := Parse(one.String(), now.Add(48*time.Hour))
		if err != nil {
			t.Fatalf("%q is written as %q: %v", text, one.String(), err)
		}
		if diff := cmp.Diff(one, again); diff != "" {
			t.Fatalf("%q: %s", text, diff)
		}
		if from, to := one.Span(); from < 0 || to > latest+1 {
			t.Fatalf("%q: %d to %d", text, from, to)
		}
		one.Match(&Row{Time: now, Server: "mail", Verdict: "passed"})
	})
}

// TestKeys: the values of one digest differ by class and key, and those under a previous key are found.
func TestKeys(t *testing.T) {
	old, next := NewKey([]byte("old")), NewKey([]byte("new"), []byte("old"))
	d := ledger.Digest(sha256.Sum256([]byte("ann")))
	row := Row{Subjects: []ledger.Subject{{Role: ledger.By, Digest: d}, {Role: ledger.Principal, Digest: d}, {Role: ledger.Received, Digest: d}, {Role: ledger.Delivered, Digest: d}, {Role: ledger.KeyRole, Digest: d}}}
	was := old.Personal(&row)
	if len(was) != 3 || len(next.Personal(&row)) != 3 || len(NewKey(nil).Personal(&row)) != 3 {
		t.Errorf("%d values", len(was))
	}
	all := (&Filter{Principal: d}).Values(next)
	if len(all) != 1 || len(all[0]) != 2 || all[0][0] == all[0][1] || !contains(was, all[0][1]) || contains(was, all[0][0]) {
		t.Errorf("%v of %v", all, was)
	}
	if got := next.Erased(row.Subjects); len(got) != 6 {
		t.Errorf("%d values are erased", len(got))
	}
	if !next.Has(old.ID()) || old.Has(next.ID()) || next.ID() == old.ID() {
		t.Error("the ids of keys")
	}
}

func contains(list []int64, v int64) bool {
	for _, x := range list {
		if x == v {
			return true
		}
	}
	return false
}

// TestMicros: times that a record can have stay in their order.
func TestMicros(t *testing.T) {
	last := int64(-1)
	for _, at := range []time.Time{{}, time.Unix(0, 1000), time.Unix(0, 1999), now, time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC), time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)} {
		if m := Micros(at); m < last || m > latest {
			t.Errorf("%v is %d, after %d", at, m, last)
		} else {
			last = m
		}
	}
}
