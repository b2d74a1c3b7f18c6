// SPDX-License-Identifier: Apache-2.0

package review

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/pellucid-mcp/pellucid/platform/capture"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// TestBelieved: what is what it should be is shown as it is.
func TestBelieved(t *testing.T) {
	it := hold.Item{ID: "49fc63623bc0f944a6b711fa51389cdb", State: hold.Held, Server: "files", Tool: "read", Principal: "auth0|\u00e9lan", Rule: "policy:large", By: "ann"}
	got := Believed(&it)
	if got.ID != it.ID || got.State != it.State || got.Server != it.Server || got.Tool != it.Tool || got.Principal != it.Principal || got.Rule != it.Rule || got.By != it.By {
		t.Errorf("%+v", got)
	}
	it.State, it.Tool, it.Principal = "no state", "no\ntool", strings.Repeat("x", 600)
	if got := Believed(&it); got.State != frame.Other || got.Tool != "?" || !strings.HasSuffix(got.Principal, "bytes)") || it.State != "no state" {
		t.Errorf("%+v of %+v", got, it)
	}
}

// TestTexts: the places of very many texts below a long path are not kept, and are cut.
func TestTexts(t *testing.T) {
	const deep, many = 100, 100_000
	name := strings.Repeat("n", 64)
	body := []byte(strings.Repeat(`{"`+name+`":`, deep) + "[" + strings.Repeat(`"x",`, many-1) + `"last"]` + strings.Repeat("}", deep))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n := 0
	var last placed
	for p := range texts(body) {
		n++
		last = p
	}
	runtime.ReadMemStats(&after)
	if n != many || last.text != "last" || !strings.HasSuffix(last.place, name+"/99999") || len(last.place) > maxPlace+16 {
		t.Errorf("%d texts, the last %+v", n, last)
	}
	if cost := after.TotalAlloc - before.TotalAlloc; cost > 128<<20 {
		t.Errorf("%d bytes allocated for %d", cost, len(body))
	}
	for range texts([]byte(`{"a\u200b":"x","b":["y"]}`)) { // a caller that has seen enough
		break
	}
	for body, want := range map[string]string{
		`{"a\u200b":"x","b":["y","z"]}`: `[{name at "a\u200b" a` + "\u200b" + `} {"a\u200b" x} {b/0 y} {b/1 z}]`, "no JSON": "[{the whole no JSON}]", "[]": "[{the whole []}]",
		`{"amount":5000,"dry":false,"edits":[],"to":{},"note":null}`: "[{amount 5000} {dry false} {edits []} {to {}} {note null}]",
	} {
		if got := fmt.Sprint(slices.Collect(texts([]byte(body)))); got != want {
			t.Errorf("%s: %+q, want %+q", body, got, want)
		}
	}
}

// at is a moment that a table of a test names.
var at = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

func heldItem() hold.Item {
	body := []byte(`{"content":[{"text":"a\u202eb"}]}`)
	return hold.Item{ID: strings.Repeat("a", 32), State: hold.Held, Server: "files", Tool: "read", Principal: "ann", Rule: "finding", Code: finding.HiddenTag,
		Digest: sha256.Sum256(body), Bytes: len(body), Body: body, Held: at, Until: at.Add(time.Hour)}
}

// TestShow: an item in each state, as a person and as a program reads it.
func TestShow(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*hold.Item)
		want   []string
		not    []string
		sealed bool
		body   bool
		hidden int
	}{
		"held by a rule": {func(it *hold.Item) { it.Rule, it.Code, it.Tool = "policy:large", finding.Held, "?" }, []string{"tool       files/?\n", "held for   policy:large\n"}, nil, false, true, 0},
		"held": {func(*hold.Item) {}, []string{"tool       files/read\n", "held for   hidden-tag (finding)\n", "held       2026-03-04 05:06Z, until 2026-03-04 06:06Z\n",
			"size       33 bytes\n", "\ncontent/0/text\n  a\u2039U+202E"}, []string{"decided", "\u202e"}, false, true, 0},
		"a message hides": {func(it *hold.Item) {
			it.Body = []byte("{\"a\":\"\U000E0064\U000E006F\U000E0020\U000E0069\U000E0074\"}")
		},
			[]string{"hidden text said", "do it"}, []string{"\U000E0064"}, false, true, 1},
		"gone": {func(it *hold.Item) { it.State, it.Body, it.Decided, it.By = hold.Denied, nil, at, "bob" },
			[]string{"decided    2026-03-04 05:06Z by bob\n", "its content is gone"}, []string{"encrypted"}, false, false, 0},
		"encrypted": {func(it *hold.Item) { it.Body = []byte("age-encryption.org/v1\nrest") }, []string{"encrypted to its reviewers"}, []string{"gone", "rest"}, true, false, 0},
		"changed by hand": {func(it *hold.Item) {
			it.ID, it.Server, it.Tool, it.Rule, it.Code = "\x1b[2J", "no\nserver", "no\ntool", "\x1b[2J", "no code"
		},
			[]string{"tool       other/?\n", "held for   other ("}, []string{"\x1b"}, false, true, 0},
	} {
		it := heldItem()
		tt.change(&it)
		var b strings.Builder
		if err := Show(&b, terminal.Palette{}, &it, Asked{}); err != nil {
			t.Fatal(err)
		}
		for _, part := range tt.want {
			if !strings.Contains(b.String(), part) {
				t.Errorf("%s: %q does not contain %q", name, b.String(), part)
			}
		}
		for _, part := range tt.not {
			if strings.Contains(b.String(), part) {
				t.Errorf("%s: %q contains %q", name, b.String(), part)
			}
		}
		if got := NewShown(&it, Asked{}); got.Sealed != tt.sealed || (got.Body != nil) != tt.body || len(got.Hidden) != tt.hidden {
			t.Errorf("%s: %+v", name, got)
		}
		if got := NewItem(&it); got.Sealed || got.Body != nil || got.Hidden != nil {
			t.Errorf("%s: of a list: %+v", name, got)
		}
	}
}

// TestTables: the tables of items and of blocks, with what a database may hold of them.
func TestTables(t *testing.T) {
	good, bad := heldItem(), heldItem()
	bad.ID, bad.Server, bad.State, bad.Code = "\x1b", "a\tb", "mine", "\n"
	var b strings.Builder
	if err := WriteItems(&b, []hold.Item{good, bad}); err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(b.String(), "\n")
	if len(rows) != 4 || strings.Join(strings.Fields(rows[0]), " ") != "ID STATE HELD UNTIL TOOL CODE BYTES" ||
		strings.Join(strings.Fields(rows[1]), " ") != good.ID+" held 2026-03-04 05:06Z 2026-03-04 06:06Z files/read hidden-tag 33" ||
		strings.Join(strings.Fields(rows[2]), " ") != `"\x1b" other 2026-03-04 05:06Z 2026-03-04 06:06Z other/read other 33` {
		t.Errorf("items:\n%s", &b)
	}
	b.Reset()
	block := hold.Block{ID: good.ID, Server: "files", Tool: "read", Text: hold.Digest{1}, Evidence: "x\x1b", Severity: 900, Since: at, Until: at.Add(time.Hour)}
	lifted := hold.Block{ID: good.ID, Server: "files", Evidence: good.ID, Severity: 1, Since: at, Until: at.Add(time.Hour), Lifted: at.Add(time.Minute), By: "b\nb"}
	if err := WriteBlocks(&b, []hold.Block{block, lifted}); err != nil {
		t.Fatal(err)
	}
	rows = strings.Split(b.String(), "\n")
	if len(rows) != 4 || strings.Join(strings.Fields(rows[1]), " ") != good.ID+` text 2026-03-04 05:06Z 2026-03-04 06:06Z files/read 900 "x\x1b"` ||
		strings.Join(strings.Fields(rows[2]), " ") != good.ID+" server 2026-03-04 05:06Z lifted 2026-03-04 05:07Z files 1 "+good.ID {
		t.Errorf("blocks:\n%s", &b)
	}
	if got := NewBlock(&lifted); got.By != frame.Other || got.Lifted != "2026-03-04T05:07:07Z" || got.Text != "" || got.Tool != "" {
		t.Errorf("%+v", got)
	}
}

// TestOpen: a reviewer opens what was held, and nothing else.
func TestOpen(t *testing.T) {
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	to, err := capture.ParseRecipients([]string{key.Recipient().String()})
	if err != nil {
		t.Fatal(err)
	}
	it := heldItem()
	plain := it.Body
	if body, err := Open(&it, "no identity"); body != nil || err != nil {
		t.Errorf("of what is not encrypted: %q, %v", body, err)
	}
	if it.Body, err = to.Seal(plain); err != nil {
		t.Fatal(err)
	}
	if body, err := Open(&it, key.String()); err != nil || !bytes.Equal(body, plain) {
		t.Errorf("%q, %v", body, err)
	}
	if _, err := Open(&it, "no identity"); !errors.Is(err, capture.ErrIdentity) {
		t.Errorf("with another text: %v", err)
	}
	if it.Body, err = to.Seal([]byte("put there by another process")); err != nil {
		t.Fatal(err)
	}
	if body, err := Open(&it, key.String()); body != nil || !errors.Is(err, hold.ErrOpened) {
		t.Errorf("of another body: %q, %v", body, err)
	}
}
