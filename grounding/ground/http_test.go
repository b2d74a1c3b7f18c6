// SPDX-License-Identifier: Apache-2.0

package ground_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/grounding/store/storetest"
	"github.com/pellucid-mcp/pellucid/platform/auth"
	"github.com/pellucid-mcp/pellucid/platform/waittest"
)

// everybody is an Authenticator: the token is the scopes.
type everybody struct{}

func (everybody) Authenticate(r *http.Request) (auth.Principal, error) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return auth.Principal{}, auth.ErrUnauthenticated
	}
	return auth.Principal{ID: "lab-1", Scopes: strings.Split(token, ",")}, nil
}

const allScopes = ground.ScopeIngest + "," + ground.ScopeEvents + "," + ground.ScopeQuery

// serveHTTP offers a over HTTP.
func serveHTTP(t testing.TB, a *ground.Adapter, o ground.HTTPOptions) string {
	t.Helper()
	srv := httptest.NewServer(a.Handler(o))
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		srv.Close()
	})
	return srv.URL
}

// request makes one request with every scope.
func request(t testing.TB, method, url, contentType string, body io.Reader, header ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+allScopes)
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return res
}

// A lineReceipt is one line of the answer to a stream.
type lineReceipt struct {
	Line int
	ground.Receipt
}

// receipts reads an answer to its end; the error says that it has none.
func receipts(t testing.TB, r io.Reader) ([]lineReceipt, error) {
	t.Helper()
	var all []lineReceipt
	dec := json.NewDecoder(r)
	for {
		var l lineReceipt
		err := dec.Decode(&l)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, l)
	}
}

// short writes receipts as "line code", with + for what was accepted.
func short(all []lineReceipt) (out []string) {
	for _, l := range all {
		s := fmt.Sprint(l.Line, " ", l.Code)
		if l.Accepted {
			s = fmt.Sprint(l.Line, " +")
		}
		out = append(out, s)
	}
	return out
}

// numbered returns the signed attestation of that number.
func numbered(t testing.TB, n int) []byte {
	return saying{by: "a", claim: fmt.Sprintf("Claim number %d holds.", n)}.sign(t)
}

func TestHTTPScopes(t *testing.T) {
	a := newAdapter(t, ground.Options{Now: testClock})
	routes := []struct{ method, path, scope string }{
		{"POST", "/ground/attestations", ground.ScopeIngest}, {"POST", "/ground/events", ground.ScopeEvents},
	}
	known := serveHTTP(t, a, ground.HTTPOptions{Auth: everybody{}, MCP: mcpOptions})
	closed := serveHTTP(t, a, ground.HTTPOptions{Auth: everybody{}, MCP: mcpOptions, RequireQueryScope: true})
	nobody := serveHTTP(t, a, ground.HTTPOptions{MCP: mcpOptions})
	status := func(method, url, token string) int {
		body := ""
		if method == "POST" {
			body = rpc("ping", "{}")
		}
		req, _ := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
		return res.StatusCode
	}
	for _, r := range routes {
		others := slices.DeleteFunc(strings.Split(allScopes, ","), func(s string) bool { return s == r.scope })
		if got := status(r.method, known+r.path, ""); got != 401 {
			t.Errorf("%s without credentials: %d", r.path, got)
		}
		if got := status(r.method, known+r.path, strings.Join(others, ",")); got != 403 {
			t.Errorf("%s with other scopes: %d", r.path, got)
		}
		if got := status(r.method, known+r.path, r.scope); got == 401 || got == 403 {
			t.Errorf("%s with its scope: %d", r.path, got)
		}
		if got := status(r.method, nobody+r.path, allScopes); got != 403 {
			t.Errorf("%s where nobody is known: %d", r.path, got)
		}
	}
	for _, c := range []struct {
		url, token string
		want       int
	}{
		{known, "", 200}, {nobody, "", 200}, {closed, "", 401}, {closed, ground.ScopeIngest, 403}, {closed, ground.ScopeQuery, 200},
	} {
		if got := status("POST", c.url+"/ground/mcp", c.token); got != c.want {
			t.Errorf("query with %q: %d, want %d", c.token, got, c.want)
		}
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if got := status("GET", nobody+path, ""); got != 200 {
			t.Errorf("%s: %d", path, got)
		}
	}
	for path, want := range map[string]int{"/": 404, "/ground": 404, "/ground/attestations": 405, "/ground/mcp": 405} {
		if got := status("GET", known+path, allScopes); got != want {
			t.Errorf("GET %s: %d, want %d", path, got, want)
		}
	}
}

func TestHTTPOne(t *testing.T) {
	var refused []ground.Refused
	a := newAdapter(t, ground.Options{Now: testClock, Refused: func(r ground.Refused) { refused = append(refused, r) }})
	url := serveHTTP(t, a, ground.HTTPOptions{Auth: everybody{}}) + "/ground/attestations"
	good := numbered(t, 1)
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, numbered(t, 2), "", "  "); err != nil {
		t.Fatal(err)
	}
	pretty.WriteString("\r\n")
	for _, c := range []struct {
		name, contentType string
		body              []byte
		status            int
		code              string
	}{
		{"good", "application/json", good, 201, ""},
		{"again", "application/json; charset=UTF-8", good, 409, "duplicate"},
		{"pretty", "application/json", pretty.Bytes(), 201, ""},
		{"empty", "application/json", nil, 422, "not-json"},
		{"two", "application/json", append(numbered(t, 3), numbered(t, 4)...), 422, "not-json"},
		{"forged", "application/json", bytes.Replace(numbered(t, 5), []byte("SUPPORTED"), []byte("FALSE"), 1), 422, "proof-invalid"},
		{"long", "application/json", bytes.Repeat([]byte(" "), attest.MaxBytes+1), 413, "too-long"},
		{"longest", "application/json", append(numbered(t, 6), bytes.Repeat([]byte(" "), attest.MaxBytes)...)[:attest.MaxBytes], 201, ""},
		{"no type", "", good, 415, ""},
		{"form", "application/x-www-form-urlencoded", good, 415, ""},
		{"charset", "application/json; charset=utf-16", good, 415, ""},
	} {
		res := request(t, "POST", url, c.contentType, bytes.NewReader(c.body))
		var got ground.Receipt
		if res.StatusCode != 415 {
			if err := json.NewDecoder(res.Body).Decode(&got); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		if res.StatusCode != c.status || got.Code != c.code || got.Accepted != (c.status == 201) {
			t.Errorf("%s: %d %+v, want %d %q", c.name, res.StatusCode, got, c.status, c.code)
		}
		if c.name == "again" && (got.Repeats == "" || got.Repeats != got.Hash) {
			t.Errorf("a replay does not say so: %+v", got)
		}
	}
	if res := request(t, "POST", url, "application/json", bytes.NewReader(good), "Content-Encoding", "gzip"); res.StatusCode != 415 {
		t.Errorf("encoded: %d", res.StatusCode)
	}
	// A long body without a length is cut off as well.
	if res := request(t, "POST", url, "application/json", io.MultiReader(bytes.NewReader(make([]byte, attest.MaxBytes+1)))); res.StatusCode != 413 {
		t.Errorf("long, in chunks: %d", res.StatusCode)
	}
	if len(refused) == 0 || refused[0].Submitter != "lab-1" {
		t.Errorf("evidence of refusals: %+v", refused)
	}
}

func TestHTTPStoreGone(t *testing.T) {
	s := storetest.Open(t)
	a := newAdapter(t, ground.Options{Store: s, Now: testClock})
	url := serveHTTP(t, a, ground.HTTPOptions{Auth: everybody{}, MCP: mcpOptions})
	if res := request(t, "GET", url+"/readyz", "", nil); res.StatusCode != 200 {
		t.Errorf("ready: %d", res.StatusCode)
	}
	s.Close()
	res := request(t, "POST", url+"/ground/attestations", "application/json", bytes.NewReader(numbered(t, 1)))
	var got ground.Receipt
	if err := json.NewDecoder(res.Body).Decode(&got); err != nil || res.StatusCode != 503 || res.Header.Get("Retry-After") == "" || !got.Retry {
		t.Errorf("%d %+v %v", res.StatusCode, got, err)
	}
	_, answer := post(t, url+"/ground/mcp", rpc("tools/call", `{"name":"ground","arguments":{"query":"x"}}`))
	if !strings.Contains(answer, string(ground.Unavailable)) || !strings.Contains(answer, `"isError":true`) {
		t.Errorf("query: %s", answer)
	}
	waittest.Until(t, "it is not ready", func() bool { // an answer of the store is believed for a second
		return request(t, "GET", url+"/readyz", "", nil).StatusCode == 503
	})
	if res := request(t, "GET", url+"/healthz", "", nil); res.StatusCode != 200 {
		t.Errorf("health: %d", res.StatusCode)
	}
}

func TestHTTPStream(t *testing.T) {
	a := newAdapter(t, ground.Options{Now: testClock})
	url := serveHTTP(t, a, ground.HTTPOptions{Auth: everybody{}}) + "/ground/attestations"
	var body bytes.Buffer
	var want []string
	add := func(line []byte, end, fate string) {
		body.Write(line)
		body.WriteString(end)
		if fate != "" {
			want = append(want, fmt.Sprintf("%d %s", bytes.Count(body.Bytes(), []byte("\n")), fate))
		}
	}
	add(numbered(t, 1), "\n", "+")
	add(nil, "\n", "")
	add(numbered(t, 2), "\r\n", "+")
	add([]byte("{"), "\n", "not-json")
	add(bytes.Repeat([]byte("x"), attest.MaxBytes+1), "\n", "too-long")
	add(numbered(t, 1), "\n", "duplicate")
	add([]byte(" \t"), "\n", "")
	add(bytes.Repeat([]byte("x"), 5*attest.MaxBytes), "\n", "too-long")
	for i := range 1500 { // more than a batch
		add(numbered(t, 100+i), "\n", "+")
	}
	add([]byte(`{"@context":"x"}`), "\n", "unknown-context")
	add(numbered(t, 3), "\n", "+")
	body.Truncate(body.Len() - 1) // a last line need not end
	for _, contentType := range []string{"application/jsonl", "application/x-ndjson; charset=utf-8"} {
		res := request(t, "POST", url, contentType, bytes.NewReader(body.Bytes()))
		all, err := receipts(t, res.Body)
		if err != nil || res.StatusCode != 200 || res.Header.Get("Content-Type") != "application/jsonl" {
			t.Fatalf("%d %v", res.StatusCode, err)
		}
		got := short(all)
		if contentType != "application/jsonl" { // the second time, everything is there
			for i := range got {
				got[i] = strings.Replace(got[i], "duplicate", "+", 1)
				want[i] = strings.Replace(want[i], "duplicate", "+", 1)
			}
		}
		if !slices.Equal(got, want) {
			i := 0
			for i < min(len(got), len(want)) && got[i] == want[i] {
				i++
			}
			t.Fatalf("%d receipts, want %d; from %d on: %v, want %v", len(got), len(want), i, got[i:min(i+5, len(got))], want[i:min(i+5, len(want))])
		}
	}
	if res := request(t, "POST", url, "application/jsonl", nil); res.StatusCode != 200 {
		t.Errorf("nothing: %d", res.StatusCode)
	}
}

// TestHTTPStreamLive: a receipt comes as soon as its line is durable, while the
// request goes on; what breaks off in a line is not taken for one.
func TestHTTPStreamLive(t *testing.T) {
	a := newAdapter(t, ground.Options{Now: testClock})
	srv := httptest.NewServer(a.Handler(ground.HTTPOptions{Auth: everybody{}}))
	defer srv.Close()
	url := srv.URL + "/ground/attestations"
	r, w := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "POST", url, r)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+allScopes)
	req.Header.Set("Content-Type", "application/jsonl")
	go w.Write(append(numbered(t, 0), '\n'))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	dec := json.NewDecoder(res.Body)
	for i := range 5 {
		var got lineReceipt
		if err := dec.Decode(&got); err != nil || !got.Accepted || got.Line != i+1 {
			t.Fatalf("line %d: %+v, %v", i+1, got, err)
		}
		if _, err := a.Attestation(t.Context(), got.Hash); err != nil {
			t.Errorf("acknowledged, but not there: %v", err)
		}
		if _, err := w.Write(append(numbered(t, i+1), '\n')); err != nil {
			t.Fatal(err)
		}
	}
	cut := numbered(t, 99)
	hash := func() string {
		p, err := attest.Parse(cut, attest.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return p.Hash().String()
	}()
	w.Write(cut) // the whole document, but not the end of its line
	cancel()
	w.CloseWithError(errors.New("gone"))
	srv.Close() // waits for the end of the request
	if _, err := a.Attestation(t.Context(), hash); !errors.Is(err, ground.NotFound) {
		t.Errorf("what broke off was taken: %v", err)
	}
}

func TestHTTPEvents(t *testing.T) {
	a := newAdapter(t, ground.Options{Now: testClock})
	url := serveHTTP(t, a, ground.HTTPOptions{Auth: everybody{}}) + "/ground/events"
	for _, c := range []struct {
		name, contentType, body string
		status                  int
	}{
		{"not JSON", "application/json", "{", 422},
		{"lines", "application/jsonl", "{}\n", 415},
		{"long", "application/json", strings.Repeat(" ", ground.MaxEvent+1), 413},
	} {
		res := request(t, "POST", url, c.contentType, strings.NewReader(c.body))
		if res.StatusCode != c.status {
			t.Errorf("%s: %d, want %d", c.name, res.StatusCode, c.status)
		}
	}
}
