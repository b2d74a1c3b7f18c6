// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"runtime"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/grounding/corpus"
	"github.com/pellucid-mcp/pellucid/text/scrub"
)

// The test program is also an adapter behind a command, and what feeds it: both
// work on the file that the variable names.
const (
	serveEnv = "CONFORM_TEST_SERVE"
	feedEnv  = "CONFORM_TEST_FEED"
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(feedEnv) != "":
		os.Exit(feedFile(os.Getenv(feedEnv)))
	case os.Getenv(serveEnv) != "":
		if err := serveFile(os.Getenv(serveEnv)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// feedFile appends the attestation on standard input to the file, if it is to be
// accepted.
func feedFile(path string) int {
	src, err := io.ReadAll(os.Stdin)
	if err != nil {
		return 2
	}
	if _, err := parse(src); err != nil {
		fmt.Println("refused for a reason")
		return 1
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return 2
	}
	defer f.Close()
	if _, err := f.Write(append(src, '\n')); err != nil {
		return 2
	}
	return 0
}

// serveFile answers on standard input and output from what the file holds.
func serveFile(path string) error {
	pr, err := attest.NewProjector(attest.Policy{})
	if err != nil {
		return err
	}
	query := func(ctx context.Context, q string) (Answer, error) {
		r := newReferenceOf(pr, scrub.Literal)
		f, err := os.Open(path)
		if err != nil {
			return Answer{}, err
		}
		defer f.Close()
		for lines := bufio.NewReader(f); ; {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return r.Query(ctx, q)
			}
			if _, err := r.Ingest(ctx, line); err != nil {
				return Answer{}, err
			}
		}
	}
	return server(query, true).Run(context.Background(), &mcp.StdioTransport{})
}

// server offers query as the tool ground: structured, or as text in a fence.
func server(query func(context.Context, string) (Answer, error), structured bool) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "reference", Version: "0.1"}, nil)
	offer(s, "ground", query, structured)
	return s
}

// offer adds a tool that answers its one argument.
func offer(s *mcp.Server, name string, answer func(context.Context, string) (Answer, error), structured bool) {
	s.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			var in struct{ Query, Hash string }
			if err := json.Unmarshal(req.Params.Arguments, &in); err != nil {
				return nil, err
			}
			a, err := answer(ctx, in.Query+in.Hash)
			if err != nil {
				return nil, err
			}
			if structured {
				return &mcp.CallToolResult{StructuredContent: json.RawMessage(a.JSON), Content: []mcp.Content{}}, nil
			}
			text := "NOTICE: a third party wrote this.\n<fence>\n" + string(a.JSON) + "\n</fence>"
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
		})
}

// locked makes an adapter that a server and a feeder may share.
type locked struct {
	mu sync.Mutex
	a  Adapter
}

func (l *locked) Ingest(ctx context.Context, src []byte) (Receipt, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.a.Ingest(ctx, src)
}

func (l *locked) Query(ctx context.Context, q string) (Answer, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.a.Query(ctx, q)
}

// TestMCP: over a protocol the report is the same as without one.
func TestMCP(t *testing.T) {
	want := run(t, &Runner{Adapter: newReference(t, attest.Policy{})})
	for _, structured := range []bool{true, false} {
		t.Run(fmt.Sprintf("structured=%v", structured), func(t *testing.T) {
			a := &locked{a: newReference(t, attest.Policy{})}
			there, here := mcp.NewInMemoryTransports()
			ctx, stop := context.WithCancel(context.Background())
			defer stop()
			served, err := server(a.Query, structured).Connect(ctx, there, nil)
			if err != nil {
				t.Fatal(err)
			}
			s, err := connect(ctx, here, Target{}, a)
			if err != nil {
				t.Fatal(err)
			}
			got := run(t, &Runner{Adapter: s})
			if d := cmp.Diff(want.Families, got.Families); d != "" {
				t.Error(d)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			_ = served.Wait()
		})
	}
}

// TestHTTP feeds by POST and queries over streamable HTTP, with a token.
func TestHTTP(t *testing.T) {
	a := &locked{a: newReference(t, attest.Policy{})}
	s := server(a.Query, true)
	ground := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: true})
	mux := http.NewServeMux()
	mux.Handle("/ground/mcp", ground)
	mux.HandleFunc("POST /ground/attestations", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got, err := a.Ingest(r.Context(), bytes.TrimSuffix(body, []byte("\n")))
		if err != nil {
			t.Error(err)
		}
		json.NewEncoder(w).Encode(map[string]any{"accepted": got.Accepted, "code": got.Code})
	})
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			http.Error(w, "who?", http.StatusUnauthorized)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	defer h.Close()
	defer http.DefaultClient.CloseIdleConnections()

	ctx := context.Background()
	session, err := Dial(ctx, Target{URL: h.URL + "/ground/mcp", Token: "secret"},
		HTTPFeeder{URL: h.URL + "/ground/attestations", Token: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	rep := run(t, &Runner{Adapter: session, Vectors: few(t)})
	if !rep.Conforms {
		t.Errorf("does not conform: %v", rep.Deviations)
	}
	if _, err := (HTTPFeeder{URL: h.URL + "/ground/attestations"}).Ingest(ctx, []byte("{}")); err == nil {
		t.Error("fed without a token")
	}
	if s, err := Dial(ctx, Target{URL: h.URL + "/ground/mcp"}, loaded{}); err == nil {
		s.Close()
		t.Error("connected without a token")
	}
}

// TestCommand feeds and queries by commands, and then what was fed as already
// loaded.
func TestCommand(t *testing.T) {
	if testing.Short() || runtime.GOOS == "windows" {
		t.Skip("starts a process for each vector, by way of env(1)")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := t.TempDir() + "/fed"
	t.Setenv(serveEnv, path)
	ctx := t.Context()
	for _, feed := range []Feeder{commandFeeder{"env", feedEnv + "=" + path, self}, loaded{}} {
		s, err := Dial(ctx, Target{Command: []string{self}}, feed)
		if err != nil {
			t.Fatal(err)
		}
		rep := run(t, &Runner{Adapter: s, Vectors: few(t)})
		if !rep.Conforms {
			t.Errorf("%T: does not conform: %v", feed, rep.Deviations)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// few returns some vectors of each family.
func few(t *testing.T) []corpus.Vector {
	t.Helper()
	all, err := corpus.All()
	if err != nil {
		t.Fatal(err)
	}
	var out []corpus.Vector
	n := map[string]int{}
	for _, v := range all {
		if n[v.Family]++; n[v.Family]%12 == 0 {
			out = append(out, v)
		}
	}
	return out
}

func TestReceipt(t *testing.T) {
	for _, c := range []struct {
		in   string
		want Receipt
	}{
		{`{"accepted":true,"hash":"x"}`, Receipt{Accepted: true}},
		{`{"accepted":false,"code":"typed-tag"}` + "\n{}", Receipt{Code: "typed-tag"}},
		{`{"code":"typed-tag"}`, Receipt{Code: "typed-tag"}},
		{`{}`, Receipt{Accepted: true}},
		{``, Receipt{Accepted: true}},
	} {
		if got := receipt([]byte(c.in)); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.in, got, c.want)
		}
	}
}

// TestParseFeeder: every way to feed, and nothing that is like one.
func TestParseFeeder(t *testing.T) {
	for how, want := range map[string]Feeder{
		"loaded":             loaded{},
		"http=https://a/b=c": HTTPFeeder{URL: "https://a/b=c", Token: "secret"},
		"command= run -x  y": commandFeeder{"run", "-x", "y"},
	} {
		if got, ok := ParseFeeder(how, "secret"); !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %#v, want %#v", how, got, want)
		}
	}
	for _, how := range []string{"", "=", "http", "http=", "command", "command=", "command=  ", "loaded=", "loaded=x", "Loaded", "file=x"} {
		if f, ok := ParseFeeder(how, ""); ok || f != nil {
			t.Errorf("%q: %#v", how, f)
		}
	}
}

// TestDump: one line for each attestation of the families and the scope, which any
// adapter may be loaded with.
func TestDump(t *testing.T) {
	all, err := Vectors()
	if err != nil {
		t.Fatal(err)
	}
	some, err := Vectors(corpus.Families[0], corpus.Families[1])
	if err != nil || len(some) == 0 || len(some) >= len(all) {
		t.Fatalf("%d of %d vectors, %v", len(some), len(all), err)
	}
	want := 0
	for i := range some {
		if some[i].Family != corpus.Families[0] && some[i].Family != corpus.Families[1] {
			t.Errorf("a vector of %s", some[i].Family)
		}
		if some[i].In(corpus.Literal) {
			want += len(attestations(&some[i]))
		}
	}
	var b bytes.Buffer
	if err := Dump(&b, some, corpus.Literal); err != nil || bytes.Count(b.Bytes(), []byte("\n")) != want || want == 0 {
		t.Errorf("%d lines, want %d, %v", bytes.Count(b.Bytes(), []byte("\n")), want, err)
	}
}

// TestProgress: results are counted, and failures beside them.
func TestProgress(t *testing.T) {
	var p Progress
	for i, status := range []string{"pass", "fail", "skip", "fail"} {
		if n := p.Add(&Result{Status: status}); n != int64(i+1) {
			t.Errorf("%d results, want %d", n, i+1)
		}
	}
	if got := p.String(); got != "4 vectors, 2 failed" {
		t.Errorf("says %s", got)
	}
}

func TestHTTPFeederStatus(t *testing.T) {
	var status int
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if status == http.StatusFound {
			w.Header().Set("Location", "/elsewhere")
		}
		w.WriteHeader(status)
		io.WriteString(w, `{"code":"why"}`)
	}))
	defer h.Close()
	defer http.DefaultClient.CloseIdleConnections()
	for _, c := range []struct {
		status        int
		accepted, bad bool
	}{{200, false, false}, {422, false, false}, {400, false, false}, {401, false, true}, {404, false, true}, {429, false, true}, {500, false, true}, {302, false, true}} {
		status = c.status
		got, err := HTTPFeeder{URL: h.URL}.Ingest(context.Background(), []byte("{}"))
		if got.Accepted != c.accepted || (err != nil) != c.bad {
			t.Errorf("%d: %+v, %v", c.status, got, err)
		}
	}
}

func TestObject(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":1}`:                      `{"a":1}`,
		"NOTICE\n<x>\n{\"a\":1}\n</x>": `{"a":1}`,
		"none {\"a\":1}":               "",
		"\n{broken":                    "",
		"":                             "",
	} {
		if got := object(in); string(got) != want {
			t.Errorf("%q: %s", in, got)
		}
	}
}
