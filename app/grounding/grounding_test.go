// SPDX-License-Identifier: Apache-2.0

package grounding

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/grounding/demonstration"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/grounding/ingest"
	"github.com/pellucid-mcp/pellucid/grounding/validator"
	"github.com/pellucid-mcp/pellucid/platform/auth"
	"github.com/pellucid-mcp/pellucid/platform/state"
)

// stateDir is a state directory of the test's own.
func stateDir(t *testing.T) *state.Dir {
	t.Helper()
	t.Setenv("PELLUCID_STATE", t.TempDir())
	dir, err := local.OpenState()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// testPlan is one that is served from a store of the test's own.
func testPlan(t *testing.T, dir *state.Dir) Plan {
	t.Helper()
	ring, err := local.Ring(dir)
	if err != nil {
		t.Fatal(err)
	}
	return Plan{DB: filepath.Join(t.TempDir(), "g.db"), Absent: MakeStore, Ring: ring,
		Log: slog.New(slog.DiscardHandler), Notice: io.Discard}
}

// codeOf is the exit code that err carries, 0 for none.
func codeOf(err error) int {
	if coded, ok := errors.AsType[*exit.Error](err); ok {
		return coded.Code
	}
	return 0
}

// TestGroundStoreAbsent: what is done where there is no store.
func TestGroundStoreAbsent(t *testing.T) {
	dir := stateDir(t)
	named := filepath.Join(t.TempDir(), "named.db")
	for _, c := range []struct {
		db     string
		absent Absent
		says   string // of the error
		demo   bool
	}{
		{"", refuseAbsent, "ground: there is no store yet: pellucid-ground import makes one", false},
		{named, refuseAbsent, "ground: there is no store yet: pellucid-ground import makes one", false},
		{named, ShowDemo, "ground: there is no store yet: pellucid-ground import makes one", false},
		{"mysql://x", MakeStore, "store: --db: want a postgres:// URL, or the path of an SQLite file", false},
		{"", ShowDemo, "", true},
		{named, MakeStore, "", false},
		{named, refuseAbsent, "", false},
		{"", MakeStore, "", false},
		{"", ShowDemo, "", false}, // a store that is there is no demonstration
	} {
		s, err := openGroundStore(t.Context(), dir, c.db, c.absent)
		if c.says != "" || err != nil {
			if fmt.Sprint(err) != c.says {
				t.Errorf("%q, %d: %v, want %s", c.db, c.absent, err, c.says)
			}
			continue
		}
		demo := s.demo
		if (demo != "") != c.demo {
			t.Errorf("%q, %d: demonstration %q", c.db, c.absent, demo)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(demo); demo != "" && err == nil {
			t.Error("the demonstration is left behind")
		}
	}
}

// TestGroundQuery: the demonstration answers and says what it is; a store of the state
// directory answers without a word.
func TestGroundQuery(t *testing.T) {
	dir := stateDir(t)
	for _, demo := range []bool{true, false} {
		var notice bytes.Buffer
		p := Plan{Notice: &notice}
		if !demo {
			im, err := openImport(t.Context(), dir, Plan{}, func(err error) { t.Error(err) })
			if err != nil {
				t.Fatal(err)
			}
			if _, err := im.Ingest(t.Context(), "operator", demonstration.Attestations()); err != nil {
				t.Fatal(err)
			}
			im.Close()
		}
		g, err := openQuery(t.Context(), dir, p)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := g.Ground(t.Context(), ground.Request{Query: "sea level"})
		if err != nil || !bytes.Contains(answer, []byte("_untrusted_text")) {
			t.Errorf("%s, %v", answer, err)
		}
		if got := strings.HasPrefix(notice.String(), "There is no store yet: this is a demonstration set of "); got != demo {
			t.Errorf("demonstration %v: says %q", demo, &notice)
		}
		g.Close()
	}
}

// TestGroundImportRefusals: what is refused for good is in the file of refusals once, and a
// duplicate is not.
func TestGroundImportRefusals(t *testing.T) {
	dir := stateDir(t)
	p := Plan{}
	g, err := openImport(t.Context(), dir, p, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	good := demonstration.Attestations()[0]
	if _, err := g.Ingest(t.Context(), "operator", [][]byte{good, good, []byte("{")}); err != nil {
		t.Fatal(err)
	}
	g.Close()
	b, err := os.ReadFile(filepath.Join(dir.Path(), ingest.RefusalsName))
	if err != nil || bytes.Count(b, []byte("\n")) != 1 || !bytes.Contains(b, []byte(`"code":"not-json"`)) {
		t.Errorf("%s, %v", b, err)
	}
}

// TestGroundServes: a served adapter listens, answers, says what there is, and ends with
// its context.
func TestGroundServes(t *testing.T) {
	dir := stateDir(t)
	g, err := Open(t.Context(), dir, testPlan(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	said, done := make(chan string, 1), make(chan error, 1)
	go func() {
		done <- g.ListenAndServe(ctx, Serving{Addr: "127.0.0.1:0"}, writerFunc(func(b []byte) {
			select {
			case said <- string(b):
			default:
			}
		}))
	}()
	first := <-said
	at, ok := strings.CutPrefix(first, "The grounding adapter answers at ")
	at, rest, _ := strings.Cut(at, "mcp ")
	if !ok || !strings.HasPrefix(rest, "(streamable HTTP") {
		t.Fatalf("says %q", first)
	}
	for path, want := range map[string]int{"": http.StatusNotFound, "attestations": http.StatusForbidden} {
		method := http.MethodGet
		if path == "attestations" {
			method = http.MethodPost
		}
		req, err := http.NewRequestWithContext(t.Context(), method, at+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, res.StatusCode, want)
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

type writerFunc func([]byte)

func (f writerFunc) Write(b []byte) (int, error) { f(b); return len(b), nil }

// TestGroundAnnounce: what a person is told follows from who may do what.
func TestGroundAnnounce(t *testing.T) {
	for _, c := range []struct {
		serving  Serving
		has, not string
	}{
		{Serving{}, "--tool-arg query=", "Authorization"},
		{Serving{}, "pellucid-ground import FILE", "$TOKEN"},
		{Serving{Auth: auth.Any()}, "--data-binary @attestations.jsonl http://h:1/ground/attestations", "pellucid-ground import"},
		{Serving{Auth: auth.Any(), Closed: true}, "scope ground:query", "--tool-arg"},
	} {
		var b strings.Builder
		c.serving.announce(&b, "h:1")
		if s := b.String(); !strings.Contains(s, c.has) || strings.Contains(s, c.not) || !strings.HasSuffix(s, "Ctrl-C\n") {
			t.Errorf("%+v: %s", c.serving, s)
		}
	}
}

// TestGroundStdio: a client that goes ends it, and so does a context, without an error.
func TestGroundStdio(t *testing.T) {
	dir := stateDir(t)
	g, err := Open(t.Context(), dir, testPlan(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	var out bytes.Buffer
	if err := g.ServeStdio(t.Context(), strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n"), &out); err != nil || !strings.Contains(out.String(), `"id":1`) {
		t.Errorf("%s, %v", &out, err)
	}
	ctx, stop := context.WithCancel(t.Context())
	silent, w := io.Pipe()
	defer w.Close()
	done := make(chan error, 1)
	go func() { done <- g.ServeStdio(ctx, silent, io.Discard) }()
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestGroundTokens: who is known by which token, and what is wrong with a token.
func TestTokens(t *testing.T) {
	const lab, all = "c1e7a90b3f5d4826a1907be2d4c86f35", "e7a90b3f5d4826a1907be2d4c86f35c1"
	secret := func(ref string) (string, error) {
		if s := map[string]string{"env:LAB": lab, "env:ALL": all, "env:SHORT": "x"}[ref]; s != "" {
			return s, nil
		}
		return "", errors.New("no such variable")
	}
	file := filepath.Join(t.TempDir(), "tokens.json")
	if err := os.WriteFile(file, []byte(`{"tokens":[{"principal":"lab","scopes":["ground:query"],"token":"env:LAB"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		file, ref string
		lab, all  bool // are known
		says      string
	}{
		{"", "", false, false, ""},
		{file, "", true, false, ""},
		{"", "env:ALL", false, true, ""},
		{file, "env:ALL", true, true, ""},
		{file + ".none", "", false, false, "ground: --tokens: "},
		{"", "env:NONE", false, false, "ground: --token: no such variable"},
		{"", "env:SHORT", false, false, "ground: --token: "},
	} {
		who, err := Tokens(c.file, c.ref, secret)
		if c.says != "" {
			if err == nil || !strings.HasPrefix(err.Error(), c.says) || codeOf(err) != exit.Config {
				t.Errorf("%q, %q: %v", c.file, c.ref, err)
			}
			continue
		}
		if err != nil || (who != nil) != (c.lab || c.all) {
			t.Fatalf("%q, %q: %v, %v", c.file, c.ref, who, err)
		}
		for token, known := range map[string]bool{lab: c.lab, all: c.all, "other": false} {
			if who == nil {
				continue
			}
			req, _ := http.NewRequest(http.MethodGet, "http://a/", nil)
			req.Header.Set("Authorization", "Bearer "+token)
			p, err := who.Authenticate(req)
			if (err == nil) != known || known && p.May(ground.ScopeIngest) != (token == all) {
				t.Errorf("%q, %q: %s: %+v, %v", c.file, c.ref, token, p, err)
			}
		}
	}
}

// TestGroundEvent: the operator and a validator withdraw, each with an own key, to the store
// and to a running adapter; a stranger does not.
func TestGroundEvent(t *testing.T) {
	dir := stateDir(t)
	p := testPlan(t, dir)
	e := Cascade{Kind: ground.Retract, Target: "https://example.org/report", DB: p.DB}
	if _, err := e.Send(t.Context(), dir); fmt.Sprint(err) != "ground: there is no store yet: pellucid-ground import makes one" {
		t.Errorf("without a store: %v", err)
	}
	g, err := Open(t.Context(), dir, p)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	receipts, err := g.Ingest(t.Context(), "", demonstration.Attestations())
	if err != nil {
		t.Fatal(err)
	}
	e.Target = receipts[0].Hash
	if r, err := e.Send(t.Context(), dir); err != nil || !r.Accepted || r.Retracted != 1 {
		t.Errorf("by the operator: %+v, %v", r, err)
	}
	stranger := filepath.Join(t.TempDir(), "key.json")
	makeKey(t, stranger)
	e.Key = stranger
	if r, err := e.Send(t.Context(), dir); err != nil || r.Accepted || r.Code != ground.CodeNotBelieved {
		t.Errorf("by a stranger: %+v, %v", r, err)
	}
	e.Key, e.Kind, e.At = "", ground.Reverse, time.Now().Add(time.Second)
	const token = "c1e7a90b3f5d4826a1907be2d4c86f35"
	who, err := Tokens("", "env:T", func(string) (string, error) { return token, nil })
	if err != nil {
		t.Fatal(err)
	}
	e.URL, e.Token = serveHandler(t, g.Handler(who, true))+"/ground/events", func() (string, error) { return token, nil }
	if r, err := e.Send(t.Context(), dir); err != nil || !r.Accepted || r.Live != 1 {
		t.Errorf("to the running adapter: %+v, %v", r, err)
	}
	for _, c := range []struct {
		name string
		edit func(*Cascade)
		code int
		says string
	}{
		{"a target that is neither a hash nor an id", func(e *Cascade) { e.Target = "x\u202e" }, exit.Usage, `ground: "x\u202e" is neither`},
		{"no key file", func(e *Cascade) { e.Key = stranger + ".none" }, 0, "ground: "},
		{"no URL", func(e *Cascade) { e.URL = "http://a b/" }, exit.Usage, `ground: --url is not one: "http://a b/"`},
		{"no token", func(e *Cascade) { e.Token = func() (string, error) { return "", errors.New("none") } }, 0, "none"},
		{"nothing there", func(e *Cascade) { e.URL = "http://127.0.0.1:1/" }, exit.Unreachable, "ground: post: "},
	} {
		bad := e
		c.edit(&bad)
		if _, err := bad.Send(t.Context(), dir); err == nil || codeOf(err) != c.code || !strings.HasPrefix(err.Error(), c.says) {
			t.Errorf("%s: %d, %v", c.name, codeOf(err), err)
		}
	}
}

func makeKey(t *testing.T, name string) {
	t.Helper()
	k, err := attest.GenerateKey(bytes.NewReader(make([]byte, 32)))
	if err != nil {
		t.Fatal(err)
	}
	if err := validator.CreateKey(name, k); err != nil {
		t.Fatal(err)
	}
}

func serveHandler(t *testing.T, h http.Handler) (url string) {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}
