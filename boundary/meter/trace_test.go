// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/pellucid-mcp/pellucid/boundary/gateway"
)

// keeper is a collector that keeps what it gets; it has no time at first.
func keeper(t *testing.T) (url string, spans func() []*tracepb.Span) {
	t.Helper()
	got := make(chan *tracepb.TracesData, 16)
	busy := true
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var req tracepb.TracesData
		if err := proto.Unmarshal(body, &req); err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("X-Key") != "k" {
			t.Errorf("collector: %s %q: %v", r.URL.Path, r.Header.Get("X-Key"), err)
		}
		if busy {
			busy = false
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		got <- &req
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(s.Close)
	return s.URL, func() (list []*tracepb.Span) {
		close(got)
		for req := range got {
			for _, rs := range req.ResourceSpans {
				for _, ss := range rs.ScopeSpans {
					list = append(list, ss.Spans...)
				}
			}
		}
		return list
	}
}

func TestTraces(t *testing.T) {
	url, spans := keeper(t)
	m, err := New(Options{OTLP: url, header: map[string]string{"X-Key": "k"}})
	if err != nil {
		t.Fatal(err)
	}
	m.Approve(map[string][]string{"files": {"read"}})
	const theirs = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	x := m.Over(TCP, Pipe).Request(gateway.Request{Server: "files", Method: "tools/call", Version: "2025-11-25", TraceParent: theirs})
	up := x.Sent("read")
	if !strings.HasPrefix(up, theirs[:35]) || up == theirs {
		t.Errorf("the server gets %s", up)
	}
	x.Answered(1)
	x.Done(gateway.OutcomeError, 1)

	other := m.Request(gateway.Request{Server: "files", Method: "ping", TraceParent: "no such thing"})
	if up := other.Sent("evil\n"); up == "" || strings.HasPrefix(up, theirs[:35]) {
		t.Errorf("another request's trace: %s", up)
	}
	other.Done(gateway.OutcomeTimeout, 0)
	if err := m.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range spans() {
		name := s.Name + " " + s.Kind.String()
		for _, a := range s.Attributes {
			if a.Key == "network.transport" || a.Key == "mcp.protocol.version" {
				name += " " + a.Value.GetStringValue()
			}
			if strings.Contains(a.String(), "evil") {
				t.Errorf("attribute %s", a)
			}
		}
		names = append(names, name)
	}
	want := "tools/call read SPAN_KIND_CLIENT pipe, tools/call read SPAN_KIND_SERVER 2025-11-25 tcp, ping SPAN_KIND_CLIENT, ping SPAN_KIND_SERVER"
	if got := strings.Join(names, ", "); got != want {
		t.Errorf("spans %s, want %s", got, want)
	}
}

func TestTracesWhereTo(t *testing.T) {
	for _, bad := range []string{"grpc://x", "http://", "::", "/x"} {
		if _, err := New(Options{OTLP: bad}); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}

// TestCollectorElsewhere: neither a redirect nor a refusal makes the client ask again.
func TestCollectorElsewhere(t *testing.T) {
	for _, status := range []int{http.StatusTemporaryRedirect, http.StatusUnauthorized, http.StatusBadRequest} {
		asked := 0
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked++
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(status)
		}))
		c := newCollector(s.URL, nil)
		if err := c.UploadTraces(t.Context(), nil); err == nil || asked != 1 {
			t.Errorf("%d: asked %d times: %v", status, asked, err)
		}
		c.Stop(t.Context())
		s.Close()
	}
}
