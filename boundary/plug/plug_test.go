// SPDX-License-Identifier: Apache-2.0

package plug

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

type counter struct {
	mu sync.Mutex
	n  int
}

func (c *counter) Record(gateway.Decision) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	return nil
}

func newHandler(t testing.TB, maxBody int64) (http.Handler, *counter) {
	t.Helper()
	c := &counter{}
	i, err := gateway.NewInspector(gateway.Config{Sink: c})
	if err != nil {
		t.Fatal(err)
	}
	h, err := New(Options{Default: i, MaxBody: maxBody})
	if err != nil {
		t.Fatal(err)
	}
	return h, c
}

func post(h http.Handler, path, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

var evidence = regexp.MustCompile(`[0-9a-f]{32}`)

func TestScrub(t *testing.T) {
	h, _ := newHandler(t, 0)
	const about = `"profile":"faithful","sanitation_version":"0.4","unicode_version":"15.0.0",`
	for _, tt := range []struct{ name, in, want string }{
		{"clean", `{"text":"hello"}`,
			`{` + about + `"clean":"hello","changed":false,"control_tokens":0,"valid":true,"severity":"info","messages":[],"events":[],"flags":[]}`},
		{"hidden", `{"text":"a\u202eb","profile":"mcp"}`,
			`{"profile":"mcp","sanitation_version":"0.4","unicode_version":"15.0.0","clean":"ab","changed":true,"control_tokens":0,"valid":false,"severity":"error","messages":[{"path":"/text","message":"hidden-bidi: 1","severity":"error"}],` +
				`"events":[{"class":"hidden-bidi","start":1,"end":4,"out":1,"out_end":1,"count":1}],"flags":[]}`},
		{"lone surrogate", `{"text":"a\ud800"}`,
			`{` + about + `"clean":"a` + "\ufffd" + `","changed":true,"control_tokens":0,"valid":true,"severity":"warn","messages":[{"path":"/text","message":"lone-surrogate: 1","severity":"warn"}],"events":[],"flags":[]}`},
		{"refused by surface", `{"text":"a\u202eb","profile":"surface"}`,
			`{"profile":"surface","sanitation_version":"0.4","unicode_version":"15.0.0","changed":false,"refused":"suspicious-unicode","control_tokens":0,` +
				`"valid":false,"severity":"error","messages":[{"path":"/text","message":"hidden-bidi: 1","severity":"error"},{"path":"/text","message":"suspicious-unicode: 1","severity":"error"}],"events":[],"flags":[{"class":"hidden-bidi","start":1,"end":4,"count":1}]}`},
		{"several, a token over two", `{"texts":["x <|im_","start|> y"]}`,
			`{` + about + `"results":[{"clean":"x ","changed":true,"control_tokens":1,"valid":false,"severity":"error","messages":[{"path":"/texts/0","message":"split-token: 1","severity":"error"}],"events":[{"class":"split-token","start":2,"end":7,"out":2,"out_end":2,"count":1}],"flags":[]},` +
				`{"clean":" y","changed":true,"control_tokens":1,"valid":false,"severity":"error","messages":[{"path":"/texts/1","message":"split-token: 1","severity":"error"}],"events":[{"class":"split-token","start":0,"end":7,"out":0,"out_end":0,"count":1}],"flags":[]}]}`},
		{"none", `{"texts":[]}`, `{` + about + `"results":[]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := post(h, "/v1/scrub", tt.in)
			if w.Code != http.StatusOK {
				t.Errorf("status %d", w.Code)
			}
			if diff := cmp.Diff(value(t, tt.want), value(t, w.Body.String())); diff != "" {
				t.Errorf("(-want +got):\n%s\n%s", diff, w.Body)
			}
		})
	}
	quote := `{"text":"` + strings.Repeat("a", 1500) + `","profile":"veritas-0.1","field":"quote"}`
	var got struct{ Clean string }
	if err := json.Unmarshal(post(h, "/v1/scrub", quote).Body.Bytes(), &got); err != nil || len(got.Clean) != 1000 {
		t.Errorf("a quote of %d bytes: %v", len(got.Clean), err)
	}
}

func value(t *testing.T, s string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		t.Fatalf("%q: %v", s, err)
	}
	return v
}

func TestResult(t *testing.T) {
	h, sink := newHandler(t, 0)
	const schema = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`
	for _, tt := range []struct {
		name, in, verdict, severity string
		valid                       bool
		holds                       []string
	}{
		{"clean", `{"server":"files","tool":"read","result":{"content":[{"type":"text","text":"hello"}],"n":1.50}}`, "passed", "info", true,
			[]string{`hello`, `"n":1.50`, `server=\"files\" tool=\"read\"`, `"findings":[]`}},
		{"poison", `{"server":"files","tool":"read","result":{"content":[{"type":"text","text":"a\u202eb"}]}}`, "changed", "error", false,
			[]string{`{"path":"/result/content/0/text","message":"hidden-bidi: 1","severity":"error"}`, `"field":"content/0/text"`}},
		{"schema", `{"server":"s","tool":"t","result":{"content":[],"structuredContent":{"n":"zzz"}},"outputSchema":` + schema + `}`, "withheld", "error", false,
			[]string{`pellucid withheld`, `schema-invalid`}},
		{"schema kept", `{"server":"s","tool":"t","result":{"content":[],"structuredContent":{"n":1}},"outputSchema":` + schema + `}`, "passed", "info", true, nil},
		{"no result", `{"result":"zzz"}`, "withheld", "error", false, []string{`pellucid withheld`, `"server":"other"`, `{"path":"/result","message":"violation: 1","severity":"error"}`, `"profile":"faithful"`}},
		{"profile", `{"profile":"faithful","result":{"content":[{"type":"text","text":"\ufb01"}]}}`, "passed", "info", true, []string{"\ufb01", `"profile":"faithful"`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sink.n = 0
			w := post(h, "/v1/result", tt.in)
			var got struct {
				Verdict, Severity, Evidence string
				Valid                       bool
				Result                      map[string]any
			}
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK {
				t.Fatalf("%d %s: %v", w.Code, w.Body, err)
			}
			if got.Verdict != tt.verdict || got.Severity != tt.severity || got.Valid != tt.valid || !evidence.MatchString(got.Evidence) || got.Result == nil {
				t.Errorf("%s", w.Body)
			}
			for _, want := range tt.holds {
				if !strings.Contains(w.Body.String(), want) {
					t.Errorf("no %s in %s", want, w.Body)
				}
			}
			if strings.Contains(w.Body.String(), "zzz") {
				t.Errorf("what was refused stands in %s", w.Body)
			}
			if sink.n != 1 {
				t.Errorf("%d records", sink.n)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	h, _ := newHandler(t, 100)
	for _, tt := range []struct {
		name, path, in string
		header         []string
		status         int
	}{
		{"no JSON", "/v1/scrub", `{`, nil, 400},
		{"twice", "/v1/scrub", `{"text":"a","text":"b"}`, nil, 400},
		{"a list", "/v1/scrub", `[]`, nil, 400},
		{"nothing", "/v1/scrub", `{}`, nil, 400},
		{"both", "/v1/scrub", `{"text":"","texts":[]}`, nil, 400},
		{"a number", "/v1/scrub", `{"text":1}`, nil, 400},
		{"a number in texts", "/v1/scrub", `{"texts":[1]}`, nil, 400},
		{"unknown member", "/v1/scrub", `{"text":"","zzz":1}`, nil, 400},
		{"another case", "/v1/scrub", `{"Text":""}`, nil, 400},
		{"unknown profile", "/v1/scrub", `{"text":"","profile":"zzz"}`, nil, 400},
		{"field of another profile", "/v1/scrub", `{"text":"","field":"quote"}`, nil, 400},
		{"too large", "/v1/scrub", `{"text":"` + strings.Repeat("z", 100) + `"}`, nil, 413},
		{"no result", "/v1/result", `{"server":"s"}`, nil, 400},
		{"server is a number", "/v1/result", `{"server":1,"result":{}}`, nil, 400},
		{"unknown profile", "/v1/result", `{"profile":"surface","result":{}}`, nil, 400},
		{"form", "/v1/result", `{"result":{}}`, []string{"Content-Type", "text/plain"}, 415},
		{"charset", "/v1/result", `{"result":{}}`, []string{"Content-Type", "application/json; charset=utf-16"}, 415},
		{"gzip", "/v1/result", `{"result":{}}`, []string{"Content-Encoding", "gzip"}, 415},
		{"too large", "/v1/interceptors/docker/after", strings.Repeat("z", 101), nil, 413},
		{"form", "/v1/interceptors/docker/after", `{}`, []string{"Content-Type", ""}, 415},
		{"elsewhere", "/v1/other", `{}`, nil, 404},
	} {
		w := post(h, tt.path, tt.in, tt.header...)
		if w.Code != tt.status || strings.Contains(w.Body.String(), "zzz") {
			t.Errorf("%s: %d %s", tt.name, w.Code, w.Body)
		}
		if w.Code != 404 && !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s: %s", tt.name, w.Body)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/scrub", nil))
	if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "POST" {
		t.Errorf("GET: %d", w.Code)
	}
	if _, err := New(Options{}); err == nil {
		t.Error("New without an inspector")
	}
}

// dockerAfter does what Docker's MCP gateway does with --interceptor=after:http:URL,
// as its documentation says: the result is posted as JSON, and an answer that is not
// empty takes its place, whatever its status.
func dockerAfter(t *testing.T, url string, result *mcp.CallToolResult) (*mcp.CallToolResult, error) {
	t.Helper()
	message, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(url, "application/json", bytes.NewReader(message))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	if err != nil || len(out) == 0 {
		return result, err
	}
	var replaced mcp.CallToolResult
	err = json.Unmarshal(out, &replaced)
	return &replaced, err
}

func TestDocker(t *testing.T) {
	h, sink := newHandler(t, 4096)
	s := httptest.NewServer(h)
	defer s.Close()
	text := func(r *mcp.CallToolResult) string {
		if len(r.Content) != 1 {
			t.Fatalf("content: %v", r.Content)
		}
		return r.Content[0].(*mcp.TextContent).Text
	}
	for _, tt := range []struct {
		name, query string
		in          *mcp.CallToolResult
		holds       string
		isError     bool
		records     int
	}{
		{"clean", "", &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "hello"}}}, `server="docker" tool="other"`, false, 1},
		{"labelled", "?server=duck&tool=search", &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "hello"}}}, `server="duck" tool="search"`, false, 1},
		{"poison", "", &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "a\u202eb <|im_start|>"}}}, "\nab \n", false, 1},
		{"error", "", &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "a\u202eb"}}}, "\nab\n", true, 1},
		{"failed call", "", nil, "pellucid withheld", true, 1},
		{"too large", "", &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strings.Repeat("zzz", 2000)}}}, "could not inspect", true, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sink.n = 0
			got, err := dockerAfter(t, s.URL+"/v1/interceptors/docker/after"+tt.query, tt.in)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(text(got), tt.holds) || strings.Contains(text(got), "\u202e") || strings.Contains(text(got), "zzz") || got.IsError != tt.isError {
				t.Errorf("%q", text(got))
			}
			if sink.n != tt.records {
				t.Errorf("%d records", sink.n)
			}
		})
	}
	// Whatever stands in front may answer for us: that must not be consent either.
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, http.StatusText(http.StatusUnauthorized), http.StatusUnauthorized)
	}))
	defer refusing.Close()
	if _, err := dockerAfter(t, refusing.URL, &mcp.CallToolResult{}); err == nil {
		t.Error("a refusal was taken for a result")
	}
}

// TestExamples holds the examples to the paths that there are.
func TestExamples(t *testing.T) {
	h, _ := newHandler(t, 0)
	files, err := filepath.Glob("../../docs/examples/plug/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	found := 0
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range regexp.MustCompile(`/v1/[a-z/]+`).FindAllString(string(b), -1) {
			found++
			if w := post(h, path, `{}`); w.Code == http.StatusNotFound {
				t.Errorf("%s: there is no %s", name, path)
			}
		}
		if strings.HasSuffix(name, ".json") {
			path := "/v1/" + strings.TrimSuffix(filepath.Base(name), ".json")
			if w := post(h, path, string(b)); w.Code != http.StatusOK {
				t.Errorf("%s: %d %s", name, w.Code, w.Body)
			}
		}
	}
	if found == 0 {
		t.Error("no example names a path")
	}
}

// FuzzPlug: whatever comes, an answer is JSON, and a 200 of Docker's is a result.
func FuzzPlug(f *testing.F) {
	for _, s := range []string{
		`{"text":"a\u202e"}`, `{"texts":["<|im_","start|>"],"profile":"faithful"}`, `{"server":"s","tool":"t","result":{"content":[]}}`,
		`{"result":{"structuredContent":{"a":1}},"outputSchema":{"type":"object"}}`, `null`, `{`,
	} {
		f.Add([]byte(s))
	}
	h, _ := newHandler(f, 0)
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, path := range []string{"/v1/scrub", "/v1/result", "/v1/interceptors/docker/after"} {
			w := post(h, path, string(body))
			var doc strictjson.Doc
			if err := doc.Reset(w.Body.Bytes(), strictjson.Limits{}); err != nil || doc.Root().Kind() != '{' {
				t.Fatalf("%s: %q: %d %q: %v", path, body, w.Code, w.Body, err)
			}
			if w.Code == http.StatusInternalServerError {
				t.Fatalf("%s: %q: %q", path, body, w.Body)
			}
			if strings.HasPrefix(path, "/v1/i") && doc.Root().Get("content").Kind() != '[' && w.Code != http.StatusOK {
				t.Fatalf("%q: %q", body, w.Body)
			}
		}
	})
}

func BenchmarkResult(b *testing.B) {
	h, _ := newHandler(b, 0)
	for _, size := range []int{1 << 10, 10 << 10, 100 << 10} {
		body := `{"server":"s","tool":"t","result":{"content":[{"type":"text","text":"` + strings.Repeat("some text, ", size/11) + `"}]}}`
		b.Run(strconv.Itoa(size>>10)+"KiB", func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if w := post(h, "/v1/result", body); w.Code != http.StatusOK {
					b.Fatal(w.Body)
				}
			}
		})
	}
}
