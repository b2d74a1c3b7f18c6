// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pellucid-mcp/pellucid/app/apptest"
)

// stepServer is a server whose tool "steps" reports progress, waits for a word of go, reports progress again and answers.
func stepServer(t *testing.T) (base string, goes chan<- struct{}) {
	t.Helper()
	wait := make(chan struct{}, 64)
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server {
		s := mcp.NewServer(&mcp.Implementation{Name: "steps", Version: "1"}, nil)
		mcp.AddTool(s, &mcp.Tool{Name: "steps", Description: "Goes on in steps."}, func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			for i := range 2 {
				if err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i + 1)}); err != nil {
					return nil, nil, err
				}
				if i > 0 {
					break
				}
				select {
				case <-wait:
				case <-ctx.Done():
					return nil, nil, ctx.Err()
				}
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "at the end"}}}, nil, nil
		})
		return s
	}, nil)
	srv := httptest.NewServer(h)
	t.Cleanup(func() {
		close(wait) // calls that wait end
		srv.Close()
	})
	return srv.URL, wait
}

// A rawSession is a session of 2025-11-25 without an SDK.
type rawSession struct {
	t  *testing.T
	id string
	n  int
}

// A rawStream is an event stream that is being read.
type rawStream struct {
	*http.Response
	lines *bufio.Scanner
	stop  context.CancelFunc
}

func (s *rawSession) do(g *apptest.Gateway, method, body string, header ...string) *rawStream {
	s.t.Helper()
	ctx, stop := context.WithTimeout(s.t.Context(), time.Minute)
	s.t.Cleanup(stop)
	req, err := http.NewRequestWithContext(ctx, method, g.Base+"/mcp/one", strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	accept := "text/event-stream"
	if method == http.MethodPost {
		accept = "application/json, text/event-stream"
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", accept)
	if s.id != "" {
		req.Header.Set("Mcp-Session-Id", s.id)
		req.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := unkept.RoundTrip(req)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { resp.Body.Close() })
	return &rawStream{resp, bufio.NewScanner(resp.Body), stop}
}

// next returns the id and the data of the next event; ok is false at the end of the stream.
func (r *rawStream) next() (id, data string, ok bool) {
	for r.lines.Scan() {
		line := r.lines.Text()
		name, value, _ := strings.Cut(line, ": ")
		switch name {
		case "id":
			id, ok = value, true
		case "data":
			data, ok = value, true
		case "":
			if ok {
				return id, data, true
			}
		}
	}
	return id, data, false
}

// rest is the data of all the events to come.
func (r *rawStream) rest() (data []string, last string) {
	for {
		id, d, ok := r.next()
		if !ok {
			return data, last
		}
		if last = id; d != "" {
			data = append(data, d)
		}
	}
}

func (s *rawSession) begin(g *apptest.Gateway) {
	s.t.Helper()
	r := s.do(g, http.MethodPost, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	r.rest()
	if s.id = r.Header.Get("Mcp-Session-Id"); s.id == "" {
		s.t.Fatalf("no session: %d\n%s", r.StatusCode, g.Log)
	}
	s.do(g, http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`).rest()
}

// steps calls the tool and reads up to the first progress, whose id it returns.
func (s *rawSession) steps(g *apptest.Gateway) (r *rawStream, first string) {
	s.t.Helper()
	s.n++
	r = s.do(g, http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"steps","arguments":{},"_meta":{"progressToken":"p"}}}`, s.n))
	for {
		id, data, ok := r.next()
		if !ok {
			s.t.Fatalf("the stream ends before the first progress: %d\n%s", r.StatusCode, g.Log)
		}
		if strings.Contains(data, `"progress":1`) {
			return r, id
		}
	}
}

// resume asks for what comes after an event.
func (s *rawSession) resume(g *apptest.Gateway, after string) *rawStream {
	s.t.Helper()
	return s.do(g, http.MethodGet, "", "Last-Event-Id", after)
}

// TestReplicasResume: a stream that broke goes on at another replica than the one that has the session. What is kept comes
// once and in order. A stream that has ended has nothing more, and requests of a stream that is gone get one clear error.
func TestReplicasResume(t *testing.T) {
	server, goes := stepServer(t)
	database := postgres.Database(t)
	config := "http: {drain: 1s}\nevidence: {mode: \"off\"}\nservers: {one: {url: " + server + "}}\n"
	a, b := startReplica(t, database, config, sharedKey), startReplica(t, database, config, sharedKey)
	b.Eventually("two replicas", func() bool { return metric(t, b, "pellucid_replicas") == "2" })
	s := &rawSession{t: t}
	s.begin(a)
	wantRest := func(what string, got []string, n int) {
		t.Helper()
		if len(got) != 2 || !strings.Contains(got[0], `"progress":2`) || !strings.Contains(got[1], "at the end") || !strings.Contains(got[1], fmt.Sprintf(`"id":%d,`, n)) {
			t.Errorf("%s: %q", what, got)
		}
	}

	r, first := s.steps(a)
	r.stop()
	r = s.resume(b, first) // while the call is under way
	goes <- struct{}{}
	rest, last := r.rest()
	wantRest("what comes after the resumption", rest, 1)

	for _, g := range []*apptest.Gateway{b, a} {
		rest, again := s.resume(g, first).rest() // after the answer, and as often as the client asks
		wantRest("what was kept", rest, 1)
		if again != last {
			t.Errorf("the last event is %q, and was %q", again, last)
		}
		if r := s.resume(g, last); r.StatusCode != http.StatusMethodNotAllowed || r.Header.Get("Allow") != "POST, DELETE" {
			t.Errorf("after the end of the stream: %d %v", r.StatusCode, r.Header)
		}
	}

	r, second := s.steps(b) // through the replica that does not have the session
	r.stop()
	goes <- struct{}{}
	rest, _ = s.resume(a, second).rest()
	wantRest("at the owner", rest, 2)

	for range 16 { // finished streams that are kept: the first one goes
		r, _ := s.steps(b)
		goes <- struct{}{}
		wantRest("undisturbed", firstOf(r.rest()), s.n)
	}
	if r := s.resume(b, last); r.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("the end of a stream that is no longer kept: %d", r.StatusCode)
	}
	if rest, _ := s.resume(b, first).rest(); len(rest) != 1 || !strings.Contains(rest[0], `"id":1,"error":{"code":7410`) {
		t.Errorf("events that are no longer kept: %q", rest)
	}

	r, third := s.steps(a)
	a.Stop()
	r.stop()
	err := <-a.Done
	a.Done <- err
	if rest, _ := s.resume(b, third).rest(); len(rest) != 1 || !strings.Contains(rest[0], fmt.Sprintf(`"id":%d,"error":{"code":7410`, s.n)) {
		t.Errorf("events of a replica that is gone: %q\n%s", rest, b.Log)
	}
	if r := s.resume(b, last); r.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("the end of a stream of a replica that is gone: %d", r.StatusCode)
	}
	r, _ = s.steps(b)
	for range 2 { // the server may still be at the call of the replica that is gone
		goes <- struct{}{}
	}
	wantRest("the session goes on", firstOf(r.rest()), s.n)
	if r := s.resume(b, "nonsense"); r.StatusCode != http.StatusBadRequest {
		t.Errorf("an id that no stream has: %d", r.StatusCode)
	}
}

func firstOf(data []string, _ string) []string { return data }
