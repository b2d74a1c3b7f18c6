// SPDX-License-Identifier: Apache-2.0

package guardlive

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// maxKept bounds what the meter keeps of a body.
const maxKept = 8 << 20

// Meter is a proxy between the guard and the model. It records what is asked and answered, so that calls are
// counted where they arrive and not where they are reported.
type Meter struct {
	proxy *httputil.ReverseProxy

	mu        sync.Mutex
	exchanges []*exchange
	open      int
	idle      *sync.Cond
}

type exchange struct {
	format    format.Format
	stream    bool
	request   []byte
	response  bytes.Buffer
	status    int
	from, end time.Time
}

// NewMeter returns a proxy for the provider at base, such as http://127.0.0.1:8080/v1. Clients say /v1 where base
// ends.
func NewMeter(base *url.URL) *Meter {
	m := &Meter{}
	m.idle = sync.NewCond(&m.mu)
	m.proxy = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			path := strings.TrimPrefix(r.In.URL.Path, "/v1")
			r.SetURL(base)
			r.Out.URL.Path = strings.TrimSuffix(base.Path, "/") + path
			r.Out.URL.RawPath = ""
			r.Out.Header.Del("Accept-Encoding") // the transport asks for gzip by itself, and undoes it
		},
		Transport:     m,
		FlushInterval: -1,
	}
	return m
}

// ServeHTTP implements http.Handler.
func (m *Meter) ServeHTTP(w http.ResponseWriter, r *http.Request) { m.proxy.ServeHTTP(w, r) }

// RoundTrip implements http.RoundTripper for the proxy.
func (m *Meter) RoundTrip(r *http.Request) (*http.Response, error) {
	x := &exchange{from: time.Now()}
	for _, f := range format.All {
		if strings.HasSuffix(r.URL.Path, f.Path("", false)) {
			x.format = f
		}
	}
	if r.Body != nil {
		body, err := io.ReadAll(io.LimitReader(r.Body, maxKept))
		if err != nil {
			return nil, err
		}
		r.Body.Close()
		x.request, r.Body = body, io.NopCloser(bytes.NewReader(body))
	}
	m.mu.Lock()
	m.exchanges = append(m.exchanges, x)
	m.open++
	m.mu.Unlock()
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		m.done(x)
		return nil, err
	}
	x.status, x.stream = resp.StatusCode, strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
	resp.Body = &recorded{ReadCloser: resp.Body, m: m, x: x}
	return resp, nil
}

// recorded copies what is read of a body.
type recorded struct {
	io.ReadCloser
	m    *Meter
	x    *exchange
	once sync.Once
}

func (r *recorded) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if room := maxKept - r.x.response.Len(); room > 0 {
		r.x.response.Write(p[:min(n, room)])
	}
	if err == io.EOF {
		r.m.mu.Lock()
		r.x.end = time.Now() // who reads an answer may ask again before the body is closed
		r.m.mu.Unlock()
	}
	return n, err
}

func (r *recorded) Close() error {
	err := r.ReadCloser.Close()
	r.once.Do(func() { r.m.done(r.x) })
	return err
}

func (m *Meter) done(x *exchange) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if x.end.IsZero() {
		x.end = time.Now()
	}
	if m.open--; m.open == 0 {
		m.idle.Broadcast()
	}
}

// Take waits until nothing is under way, and returns what was recorded since the last time.
func (m *Meter) Take() Cost {
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.open > 0 {
		m.idle.Wait()
	}
	list := m.exchanges
	m.exchanges = nil
	return count(list)
}

// Cost is what one case has cost, as the model's side sees it.
type Cost struct {
	Proposed []Call // by the model, in answer to the client's request
	Answered bool   // the model answered the client's request
	Trusted  int    // extra calls that showed the model no tool result
	Context  int    // extra calls that showed it the conversation
	Uncached int64  // tokens of the extra calls: input that was not cached, and output
	Rounds   int    // extra calls that had to wait for one another
	Took     time.Duration
}

// count reads the exchanges of one case. The client's own request is the first that has tools.
func count(list []*exchange) (c Cost) {
	slices.SortStableFunc(list, func(a, b *exchange) int { return a.from.Compare(b.from) })
	main := slices.IndexFunc(list, (*exchange).tools)
	if main < 0 {
		return c
	}
	answer := list[main].answer()
	c.Answered = answer != nil && list[main].status == http.StatusOK
	if c.Answered {
		c.Proposed = calls(answer)
	}
	var until time.Time
	for i, x := range list {
		if i == main || x.format == nil {
			continue
		}
		if x.tools() {
			c.Context++
		} else {
			c.Trusted++
		}
		if a := x.answer(); a != nil {
			c.Uncached += a.Usage.Input - a.Usage.Cached + a.Usage.Output
		}
		if !x.from.Before(until) {
			c.Rounds++
			until = x.end
		} else if x.end.After(until) {
			until = x.end
		}
		c.Took += x.end.Sub(x.from)
	}
	return c
}

// tools reports whether the request names tools.
func (x *exchange) tools() bool {
	if x.format == nil {
		return false
	}
	tools := format.Parse(x.request).Get("tools")
	for range tools.Elements() {
		return true
	}
	return false
}

// answer reads the answer; nil if it is none of the format.
func (x *exchange) answer() *format.Answer {
	if x.format == nil {
		return nil
	}
	if !x.stream {
		return x.format.Read(format.Parse(x.response.Bytes()))
	}
	split, s := x.format.Split(maxKept, false), x.format.NewStream()
	split.Feed(x.response.Bytes())
	for {
		e, ok, err := split.Next()
		if !ok || err != nil {
			return s.Answer()
		}
		s.Event(e)
	}
}

// calls are those of an answer.
func calls(a *format.Answer) (out []Call) {
	for _, c := range a.Calls() {
		call := Call{Tool: c.Name, Args: map[string]string{}}
		for name, value := range format.Parse(c.Arguments).Members() {
			call.Args[name.Text()] = text(value)
		}
		out = append(out, call)
	}
	return out
}

// text is a value as a text: a string without its quotes, everything else as it is spelled.
func text(v strictjson.Value) string {
	if v.Kind() == '"' {
		return v.Text()
	}
	return string(v.Raw())
}
