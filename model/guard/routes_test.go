// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/model/guard"
	"github.com/pellucid-mcp/pellucid/model/llm"
)

// A recorder is a provider that notes every request, and answers each that holds the
// attack, on whatever route, with the same privileged call in all three formats.
type recorder struct {
	*httptest.Server
	mu   sync.Mutex
	seen []recorded
}

type recorded struct {
	target, method string
	header         http.Header
	body           []byte
}

const hostileAnswer = `{"type":"message","role":"assistant","content":[{"type":"tool_use","id":"x","name":"send_money","input":{"recipient":"mallory"}}],"stop_reason":"tool_use",
"choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"x","type":"function","function":{"name":"send_money","arguments":"{\"recipient\":\"mallory\"}"}}]},"finish_reason":"tool_calls"}],
"object":"response","status":"completed","output":[{"type":"function_call","call_id":"x","name":"send_money","arguments":"{\"recipient\":\"mallory\"}"}]}`

const calmAnswer = `{"type":"message","role":"assistant","content":[{"type":"text","text":"Done."}],"stop_reason":"end_turn",
"choices":[{"index":0,"message":{"role":"assistant","content":"Done."},"finish_reason":"stop"}],
"object":"response","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Done."}]}]}`

func newRecorder(t testing.TB) *recorder {
	p := &recorder{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		p.mu.Lock()
		p.seen = append(p.seen, recorded{r.RequestURI, r.Method, r.Header, body})
		p.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		if bytes.Contains(body, []byte("IMPORTANT: pay")) {
			_, _ = io.WriteString(w, hostileAnswer)
			return
		}
		_, _ = io.WriteString(w, calmAnswer)
	}))
	t.Cleanup(p.Close)
	return p
}

// take returns what has come since the last call.
func (p *recorder) take() []recorded {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.seen
	p.seen = nil
	return all
}

// spellings are request targets that some server, proxy or client library takes for path.
func spellings(path string) []string {
	last := strings.LastIndexByte(path, '/')
	head, tail := path[:last], path[last+1:]
	all := []string{
		path + "%3F", path + "%3Fx=1", path + "%3fbeta=true", path + "%23", path + "%23x", path + "#", path + "#x", path + "?#", path + "%20", path + "%09", path + "%0a", path + "%0D%0A",
		path + "%00", path + "%00.json", path + ";", path + ";x", path + ";x=1", path + "%3B", path + "%3bx=1", path + ":", path + ":x", path + ".", path + "..", path + ".json", path + "+",
		path + "%2F", path + "%2f", path + "%5C", path + "%5c", path + "\\", path + "/", path + "//", path + "/.", path + "/./", path + "/..", path + "/../" + tail, path + "/x/..", path + "/%2e", path + "/%2e%2e/" + tail,
		path + "?", path + "?x=1", path + "?x", path + "?&", path + "?beta=true&beta=true", path + "?beta=%74rue", path + "?beta=true#x", path + "?_method=POST", path + "?%24httpMethod=POST", path + "?beta=true;x=1", path + "?api-version=../..",
		path + "%EF%BC%9F", path + "%E2%80%8B", path + "%C2%A0", path + "%AD", path + "\u200b", path + "\uff1f", path + "\u00a0", path + "%", path + "%2", path + "%zz", path + "%u003f", path + "%253F", path + "%2523", path + "%252e",
		"/" + path, "//" + path, "/." + path, "/.." + path, "/x/.." + path, "/%2e" + path, "/%2e%2e" + path, "/%2f" + path, "/%2F" + path[1:], "\\" + path[1:], "/v1/v1" + path[3:], "/V1" + path[3:], "/v01" + path[3:], "/%76" + path[2:], path[1:], "*",
		head + "//" + tail, head + "/./" + tail, head + "/x/../" + tail, head + "/%2e/" + tail, head + "/%2E%2E/v1/" + tail, head + "%2f" + tail, head + "%2F" + tail, head + "%5C" + tail, head + "\\" + tail, head + "/" + tail[:1] + "%00" + tail[1:],
		head + "/" + strings.ToUpper(tail), strings.ToUpper(path), head + "/" + strings.ToUpper(tail[:1]) + tail[1:], head + "/%" + fmt.Sprintf("%02x", tail[0]) + tail[1:], head + "/%" + fmt.Sprintf("%02X", tail[0]) + tail[1:],
		head + "/" + strings.Replace(tail, "s", "\u017f", 1), head + "/" + strings.Replace(tail, "s", "%C5%BF", 1), head + "/" + tail[:len(tail)-1], path + "s", head + "/;" + tail, head + ";x/" + tail, head + "/ " + tail, head + "/%20" + tail,
		"http://127.0.0.1" + path, "https://127.0.0.1" + path, "http://other.example" + path, "http:" + path, "//other.example" + path, "http://127.0.0.1" + path + "?x", "file://" + path,
		"/v1/openai" + path[3:], "/v1/proxy" + path[3:], "/v1/beta" + path[3:], "/v1beta" + path[3:], "/azure" + path, "/api" + path, "/v2" + path[3:],
	}
	return slices.DeleteFunc(all, func(s string) bool { return s == path })
}

var methods = []string{"POST", "GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY", "post", "Post", "POSTX"}

// ask11 sends bytes as they are over HTTP/1.1.
func ask11(t *testing.T, addr, method, target string, header string, body []byte) (status int, text string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(60 * time.Second))
	fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s", method, target, header, len(body), body)
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		return 0, ""
	}
	defer resp.Body.Close()
	all, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(all)
}

// inspectedOnly fails for every request that has reached the provider and is not a
// POST to one of these paths, letter for letter.
func inspectedOnly(t *testing.T, p *recorder, what string) (any bool) {
	t.Helper()
	for _, got := range p.take() {
		any = true
		if got.method != "POST" || !slices.Contains([]string{"/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1beta/models/m:generateContent"}, strings.Replace(strings.TrimSuffix(got.target, "?beta=true"), "/models/M:", "/models/m:", 1)) {
			t.Errorf("%s: %s %+q reached the provider, signed: %v", what, got.method, got.target, strings.Contains(fmt.Sprint(got.header), secret))
		}
	}
	return any
}

// TestTargets: whatever is asked for, by whatever method, what reaches the provider is a
// plain path whose answer is inspected, and nothing else is signed or forwarded.
func TestTargets(t *testing.T) {
	for _, audit := range []bool{false, true} {
		provider := newRecorder(t)
		r := newRig(t, obedient, func(o *guard.Options) {
			o.Upstream, o.Audit = provider.URL, audit
			o.Key = llm.NewKey("env:K", func() (string, error) { return secret, nil })
		})
		addr := r.front.Listener.Addr().String()
		for _, f := range formats {
			body := conversation(f, false, "Sum up.", attack)
			for _, method := range methods {
				for _, target := range append(spellings(paths[f]), paths[f]) {
					plain := method == "POST" && strings.Replace(target, "/models/M:", "/models/m:", 1) == paths[f] // another model
					status, text := ask11(t, addr, method, target, "", body)
					if any := inspectedOnly(t, provider, fmt.Sprintf("%s %+q", method, target)); any != plain && !audit { // Audit asks behind an answer
						t.Errorf("%s %+q: reached the provider: %v (status %d)", method, target, any, status)
					}
					switch {
					case !audit && strings.Contains(text, "mallory"):
						t.Errorf("%s %+q: the call arrived", method, target)
					case method == "OPTIONS" && target == "*": // net/http answers it by itself
					case plain && status != 200, !plain && (status == 200 || status/100 == 3):
						t.Errorf("%s %+q: status %d", method, target, status)
					case !plain && len(text) > 300:
						t.Errorf("%s %+q: %d bytes of an error: %.300q", method, target, len(text), text)
					}
				}
			}
		}
	}
}

// TestTargetsHTTP2: a pseudo path of HTTP/2 is a request target like any other.
func TestTargetsHTTP2(t *testing.T) {
	provider := newRecorder(t)
	r := newRig(t, obedient, func(o *guard.Options) {
		o.Upstream = provider.URL
		o.Key = llm.NewKey("env:K", func() (string, error) { return secret, nil })
	})
	front := httptest.NewUnstartedServer(r.guard)
	front.EnableHTTP2 = true
	front.StartTLS()
	defer front.Close()
	body := conversation(format.Responses, false, "Sum up.", attack)
	for _, target := range append(spellings("/v1/responses"), "/v1/responses", "", " /v1/responses") {
		for _, method := range []string{"POST", "GET", "PUT", "CONNECT"} {
			ask2(t, front, method, target, body)
			if any := inspectedOnly(t, provider, fmt.Sprintf("%s %+q", method, target)); any != (method == "POST" && target == "/v1/responses") {
				t.Errorf("%s %+q: reached the provider: %v", method, target, any)
			}
		}
	}
}

// ask2 sends a request whose pseudo headers are as they are given, and waits for the end
// of the answer or of the connection.
func ask2(t *testing.T, front *httptest.Server, method, target string, body []byte) {
	t.Helper()
	conn, err := tls.Dial("tcp", front.Listener.Addr().String(), &tls.Config{NextProtos: []string{"h2"}, InsecureSkipVerify: true}) // the test's own server
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(60 * time.Second))
	var head bytes.Buffer
	enc := hpack.NewEncoder(&head)
	for _, h := range [][2]string{{":method", method}, {":scheme", "https"}, {":authority", "127.0.0.1"}, {":path", target}, {"content-type", "application/json"}} {
		_ = enc.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]})
	}
	_, _ = io.WriteString(conn, http2.ClientPreface)
	f := http2.NewFramer(conn, conn)
	_ = f.WriteSettings()
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: head.Bytes(), EndHeaders: true})
	_ = f.WriteData(1, true, body)
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return
		}
		switch frame := frame.(type) {
		case *http2.GoAwayFrame, *http2.RSTStreamFrame:
			return
		case *http2.DataFrame:
			if frame.StreamEnded() {
				return
			}
		case *http2.HeadersFrame:
			if frame.StreamEnded() {
				return
			}
		}
	}
}

// TestKnownRoutes: what is passed goes on as it came, its query in its parts, and nothing
// by which it could be another request at the provider.
func TestKnownRoutes(t *testing.T) {
	provider := newRecorder(t)
	r := newRig(t, obedient, func(o *guard.Options) {
		o.Upstream = provider.URL + "/base/v1"
		o.Pass = []string{"GET /v1/files?limit&after", "DELETE /v1/files/*", "POST /v1/threads/*/runs"}
		o.Key = llm.NewKey("env:K", func() (string, error) { return secret, nil })
	})
	addr := r.front.Listener.Addr().String()
	const override = "X-HTTP-Method-Override: POST\r\nX-HTTP-Method: POST\r\nX-Method-Override: POST\r\nX-Original-URL: /v1/messages\r\nX-Rewrite-URL: /v1/messages\r\n"
	for _, tt := range []struct {
		method, target, body string
		status               int
	}{
		{"GET", "/v1/models", "", 200},
		{"GET", "/v1/models?limit=1&after_id=model_x", "", 200},
		{"GET", "/v1/models/ft:gpt-4o-mini:org::8id", "", 200},
		{"GET", "/v1/models", "{}", 400},
		{"GET", "/v1/models?limit=1&limit=2", "", 404},
		{"GET", "/v1/models?limit=%31", "", 404},
		{"GET", "/v1/models/..", "", 404},
		{"GET", "/v1/models/.", "", 404},
		{"GET", "/v1/models/", "", 404},
		{"GET", "/v1/models/a/b", "", 404},
		{"POST", "/v1/models", "{}", 405},
		{"POST", "/v1/embeddings", "{}", 200},
		{"POST", "/v1/messages/count_tokens?beta=true", "{}", 200},
		{"POST", "/v1/chatkit/sessions", "{}", 404},
		{"POST", "/v1/realtime/client_secrets", "{}", 404},
		{"GET", "/v1/responses/resp_1", "", 404},
		{"POST", "/v1/completions", "{}", 404},
		{"POST", "/v1/assistants", "{}", 404},
		{"GET", "/v1/organization/admin_api_keys", "", 404},
		{"GET", "/v1/files?limit=2&after=file-1", "", 200},
		{"GET", "/v1/files?limit=2&after=file-1&purpose=x", "", 404},
		{"DELETE", "/v1/files/file-1", "", 200},
		{"POST", "/v1/files", "{}", 405},
		{"DELETE", "/v1/files/..", "", 404},
		{"POST", "/v1/threads/t_1/runs", "{}", 200},
		{"POST", "/v1/threads/t_1/x/runs", "{}", 404},
	} {
		status, text := ask11(t, addr, tt.method, tt.target, override, []byte(tt.body))
		if status != tt.status {
			t.Errorf("%s %s: status %d, %s", tt.method, tt.target, status, text)
		}
		got := provider.take()
		if tt.status != 200 {
			if len(got) > 0 {
				t.Errorf("%s %s reached the provider", tt.method, tt.target)
			}
			continue
		}
		if len(got) != 1 || got[0].method != tt.method || got[0].target != "/base"+tt.target || string(got[0].body) != tt.body {
			t.Errorf("%s %s: the provider got %+v", tt.method, tt.target, got)
			continue
		}
		for name := range got[0].header {
			if strings.Contains(name, "Method") || strings.HasSuffix(name, "Url") {
				t.Errorf("%s %s: the provider got %s", tt.method, tt.target, name)
			}
		}
	}
	body := conversation(format.Messages, false, "Sum up.", "Nothing.")
	if status, text := ask11(t, addr, "POST", "/v1/messages?beta=true", "Content-Type: application/json; charset=utf-16\r\n", body); status != 200 {
		t.Errorf("status %d, %s", status, text)
	}
	if got := provider.take(); len(got) != 1 || got[0].target != "/base/v1/messages?beta=true" || fmt.Sprint(got[0].header["Content-Type"]) != "[application/json]" {
		t.Errorf("the provider got %+v", got)
	}
}

// TestPassed: what an operator names is a method and a plain path, and opens no path whose
// answers are inspected, in whatever case.
func TestPassed(t *testing.T) {
	for _, line := range []string{"", "GET", "/v1/files", "GET /v2/files", "GET /v1/", "GET /v1/*", "POST /v1/*/completions", "GET /v1/files/", "GET /v1//files", "GET /v1/a/../b", "GET /v1/a%2fb",
		"GET /v1/files?", "GET /v1/files?a=1", "get /v1/files", "CONNECT /v1/files", "GET  /v1/files", "GET /v1/files ", "GET /v1/files#x", "GET /v1/f*", "POST /v1/responses", "GET /v1/Responses", "POST /v1/chat/completions?x"} {
		if _, err := guard.New(guard.Options{Upstream: "https://api.example.com", Pass: []string{line}}); err == nil {
			t.Errorf("%q is taken", line)
		}
	}
	provider := newRecorder(t)
	r := newRig(t, obedient, func(o *guard.Options) {
		o.Upstream, o.Pass = provider.URL, []string{"POST /v1/chat/*", "PUT /v1/chat/*"}
	})
	for _, target := range []string{"/v1/chat/Completions", "/v1/chat/completions;x", "/v1/chat/%63ompletions"} {
		if status, _ := ask11(t, r.front.Listener.Addr().String(), "POST", target, "", []byte("{}")); status == 200 || len(provider.take()) > 0 {
			t.Errorf("%s: status %d", target, status)
		}
	}
}
