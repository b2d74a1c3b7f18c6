// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/waittest"
)

// watcher is an Observer that writes down what it is told.
type watcher struct {
	mu   sync.Mutex
	log  []string
	open int

	version string // of the request before
}

func (w *watcher) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

func (w *watcher) Session(server string) func(error) {
	w.note("session %s", server)
	return func(error) { w.note("ended") }
}

func (w *watcher) Request(r Request) Exchange {
	w.mu.Lock()
	w.open++
	w.mu.Unlock()
	w.note("%s", r.Method)
	w.mu.Lock()
	w.version = r.Version
	w.mu.Unlock()
	return &watching{w}
}

type watching struct{ w *watcher }

func (x *watching) Sent(tool string) { x.w.note("sent %s", tool) }
func (x *watching) Answered(int)     { x.w.note("answered") }
func (x *watching) Done(o Outcome, _ int) {
	x.w.mu.Lock()
	x.w.open--
	x.w.mu.Unlock()
	x.w.note("done %s", o)
}

func (w *watcher) take() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := strings.Join(w.log, ", ")
	w.log = nil
	return s
}

// eventually waits for what the observer is told behind an answer's delivery.
func (w *watcher) eventually(t *testing.T, want string) {
	t.Helper()
	got := ""
	defer func() {
		if got != want {
			t.Logf("told %q", got)
		}
	}()
	waittest.Until(t, want, func() bool {
		if more := w.take(); more != "" {
			got = strings.TrimPrefix(got+", "+more, ", ")
		}
		return got == want
	})
}

func TestObserver(t *testing.T) { synctest.Test(t, observer) }

func observer(t *testing.T) {
	w := &watcher{}
	r := newRig(t, func(c *Config) {
		c.Observer, c.Timeout = w, 300*time.Millisecond
		c.Tools = func(name string) *Rule { return &Rule{Denied: name == "forbidden"} }
	})
	up := r.request("1", "tools/call", `{"name":"read"}`)
	r.result(up, `{"content":[]}`)
	w.eventually(t, `session srv, tools/call, sent read, answered, done ok`)
	up = r.request("1", "tools/call", `{"name":"invented"}`)
	r.result(up, `{"isError":true,"content":[]}`)
	w.eventually(t, `tools/call, sent ?, answered, done tool_error`)
	up = r.request("1", "tools/call", `{"name":"read"}`)
	r.result(up, `{"content":[],"structuredContent":1,"STRUCTUREDCONTENT":1}`)
	w.eventually(t, `tools/call, sent read, answered, done withheld`)
	up = r.request("1", "ping", "")
	r.server.send(`{"jsonrpc":"2.0","id":` + up + `,"error":{"code":1,"message":"x"}}`)
	r.client.next()
	w.eventually(t, `ping, sent ?, answered, done error`)
	r.client.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"forbidden"}}`)
	r.client.next()
	w.eventually(t, `tools/call, done refused`)
	r.client.send(`{"jsonrpc":"2.0","id":1,"method":"who/knows"}`)
	r.server.next()
	r.client.next() // it took too long
	w.eventually(t, `other, sent ?, done timeout`)
	r.awaits("notifications/cancelled")
	r.request("2", "ping", "")
	r.client.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
	w.eventually(t, `ping, sent ?, done cancelled`)
	r.awaits("notifications/cancelled")
	r.request("3", "ping", "")
	r.server.w.Close()
	r.client.next()
	r.end()
	w.eventually(t, `ping, sent ?, done gone, ended`)
	if w.open != 0 {
		t.Errorf("%d requests never ended", w.open)
	}
}

// TestTrace: the trace that a client names goes to the server as it is.
func TestTrace(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) { c.Observer = &watcher{} })
	const params = `{"a":1.50,"_meta":{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","tracestate":"a=1"}}`
	r.client.send(`{"jsonrpc":"2.0","id":1,"method":"ping","params":` + params + `}`)
	if got := string(parse(t, r.server.next())["params"]); got != params {
		t.Errorf("the server heard %s", got)
	}
}

// TestVersion: an observer is told of the revision that is spoken, never of what a peer
// calls one.
func TestVersion(t *testing.T) {
	t.Parallel()
	w := &watcher{}
	r := newRig(t, func(c *Config) { c.Observer = w })
	told := func(method, params, want string) {
		t.Helper()
		r.result(r.request("1", method, params), `{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}`)
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.version != want {
			t.Errorf("%s %s: version %q, want %q", method, params, w.version, want)
		}
	}
	const modern = `{"_meta":{"io.modelcontextprotocol/protocolVersion":"%s"}}`
	told("ping", "", "")
	told("ping", fmt.Sprintf(modern, "2025-11-25"), "2025-11-25")
	told("ping", fmt.Sprintf(modern, "evil"), "")
	told("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`, "")
	told("ping", "", "2025-06-18")
	told("ping", fmt.Sprintf(modern, "evil"), "2025-06-18")
}
