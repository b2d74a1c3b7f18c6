// SPDX-License-Identifier: Apache-2.0

package ground_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pellucid-mcp/pellucid/grounding/ground"
)

// A fed is a line of a feed.
type fed struct{ Cursor, Kind, Hash, Original string }

// getFeed asks for what comes after a cursor and returns the lines.
func getFeed(t testing.TB, c *http.Client, url, query string) (lines []fed, header http.Header) {
	t.Helper()
	res, err := c.Get(url + "?" + query)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Fatalf("status %d", res.StatusCode)
	}
	in := bufio.NewScanner(res.Body)
	in.Buffer(nil, 8<<20)
	for in.Scan() {
		var l fed
		d := json.NewDecoder(bytes.NewReader(in.Bytes()))
		d.DisallowUnknownFields()
		if err := d.Decode(&l); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
	if in.Err() != nil {
		t.Fatal(in.Err())
	}
	return lines, res.Header
}

// serve serves the feed of a.
func serve(t testing.TB, a *ground.Adapter) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(a.FeedHandler())
	t.Cleanup(s.Close)
	return s
}

// sayings makes n attestations of distinct claims.
func sayings(n int) []saying {
	out := make([]saying, n)
	for i := range out {
		out[i] = saying{by: "a", claim: fmt.Sprintf("There are %d kinds of snow.", i)}
	}
	return out
}

// TestFeed: everything that was stored, byte for byte, in order and in pages.
func TestFeed(t *testing.T) {
	a := newAdapter(t, ground.Options{Now: testClock, Issuers: []string{validator(t, "issuer").DID()}})
	all := sayings(600)
	receipts := ingest(t, a, all...)
	retraction, reversal := event(t, ground.Retract, source, "issuer", testTime.Add(-time.Hour)), event(t, ground.Reverse, source, "issuer", testTime)
	r1, _ := send(t, a, retraction)
	r2, _ := send(t, a, reversal)
	s := serve(t, a)

	var want []fed
	for i, r := range receipts {
		want = append(want, fed{strconv.Itoa(i + 1), "attestation", r.Hash, string(all[i].sign(t))})
	}
	want = append(want, fed{"601", "retract", r1.Hash, string(retraction)}, fed{"602", "reverse", r2.Hash, string(reversal)},
		fed{Cursor: "602", Kind: "end"})
	got, header := getFeed(t, s.Client(), s.URL, "")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if header.Get("Content-Type") != "application/jsonl" || !strings.Contains(header.Get("Cache-Control"), "private") {
		t.Errorf("header %v", header)
	}
	for _, c := range []struct {
		query       string
		first, last int // of want
		end         string
	}{
		{"after=0&limit=1", 0, 1, "more"},
		{"limit=602", 0, 602, "more"}, // whoever asks for no more is not told that there is none
		{"limit=603", 0, 602, "end"},
		{"after=255&limit=257", 255, 512, "more"},
		{"after=600&limit=10000&wait=0", 600, 602, "end"},
	} {
		got, _ := getFeed(t, s.Client(), s.URL, c.query)
		want := append(want[c.first:c.last:c.last], fed{Cursor: strconv.Itoa(c.last), Kind: c.end})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", c.query, diff)
		}
	}
	for _, after := range []string{"602", "603", "9223372036854775807"} {
		got, _ := getFeed(t, s.Client(), s.URL, "after="+after)
		if diff := cmp.Diff([]fed{{Cursor: after, Kind: "end"}}, got); diff != "" {
			t.Errorf("after=%s: %s", after, diff)
		}
	}
}

// TestFeedRefuses: what cannot be answered gets a constant text.
func TestFeedRefuses(t *testing.T) {
	st := openStore(t)
	s := serve(t, newAdapter(t, ground.Options{Store: st}))
	ask := func(method, query string) (int, string, http.Header) {
		req, err := http.NewRequest(method, s.URL+"?"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := s.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		return res.StatusCode, string(b), res.Header
	}
	_, constant, _ := ask("GET", "after=x")
	for _, query := range []string{
		"after=", "after=-1", "after=01", "after=1.0", "after=%31x", "after=9223372036854775808", "after=1&after=1", "after",
		"limit=0", "limit=10001", "limit=", "wait=61", "wait=-1", "wait=1s", "since=1", "AFTER=1", "after=1;limit=1", "%zz",
		"after=" + strings.Repeat("9", 5000),
	} {
		if status, text, _ := ask("GET", query); status != http.StatusBadRequest || text != constant {
			t.Errorf("%s: %d %q", query, status, text)
		}
	}
	if status, _, header := ask("POST", ""); status != http.StatusMethodNotAllowed || header.Get("Allow") != "GET" {
		t.Errorf("POST: %d", status)
	}
	st.Close()
	status, text, header := ask("GET", "")
	if status != http.StatusServiceUnavailable || header.Get("Retry-After") == "" || strings.Contains(text, "sql") {
		t.Errorf("closed store: %d %q", status, text)
	}
}

// A pipe is a server without a network, so that time can be made to pass.
type pipe struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p pipe) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p pipe) Close() error   { close(p.done); return nil }
func (p pipe) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func (p pipe) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.conns <- far:
		return near, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// serveOnPipe serves h until stop is called, and returns a client for it.
func serveOnPipe(h http.Handler) (c *http.Client, stop func()) {
	p := pipe{make(chan net.Conn), make(chan struct{})}
	s := &http.Server{Handler: h}
	served := make(chan struct{})
	go func() {
		defer close(served)
		s.Serve(p)
	}()
	tr := &http.Transport{DialContext: p.dial, DisableCompression: true}
	return &http.Client{Transport: tr}, func() {
		tr.CloseIdleConnections()
		s.Close()
		<-served
	}
}

// TestFeedWait: who waits gets news soon, and an empty answer in the end.
func TestFeedWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdapter(t, ground.Options{Now: testClock})
		c, stop := serveOnPipe(a.FeedHandler())
		defer stop()
		began := time.Now()
		if got, _ := getFeed(t, c, "http://a/", "wait=20"); len(got) != 1 || got[0].Kind != "end" {
			t.Errorf("%+v", got)
		}
		if d := time.Since(began); d != 20*time.Second {
			t.Errorf("waited for %v", d)
		}
		go func() {
			time.Sleep(5 * time.Second)
			ingest(t, a, sayings(1)...)
		}()
		began = time.Now()
		if got, _ := getFeed(t, c, "http://a/", "wait=60"); len(got) != 2 || got[0].Kind != "attestation" {
			t.Errorf("%+v", got)
		}
		if d := time.Since(began); d < 5*time.Second || d > 6*time.Second {
			t.Errorf("news after %v", d)
		}
	})
}

// TestFeedClients: who does not read, or goes away, is not waited for.
func TestFeedClients(t *testing.T) {
	for _, c := range []struct {
		name  string
		query string
		do    func(*http.Response, context.CancelFunc)
		most  time.Duration
	}{
		{"does not read", "", func(*http.Response, context.CancelFunc) {}, ground.FeedStall + time.Second},
		{"reads a little", "", func(res *http.Response, _ context.CancelFunc) { io.ReadFull(res.Body, make([]byte, 100)) }, ground.FeedStall + time.Second},
		{"goes away", "after=10000&wait=60", nil, 2 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAdapter(t, ground.Options{Now: testClock})
				ingest(t, a, saying{by: "a", claim: "Snow is cold.", rationale: strings.Repeat("So it is. ", 30_000)})
				var took time.Duration
				handler := a.FeedHandler()
				client, stop := serveOnPipe(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					began := time.Now()
					handler.ServeHTTP(w, r)
					took = time.Since(began)
				}))
				defer stop()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				req, _ := http.NewRequestWithContext(ctx, "GET", "http://a/?"+c.query, nil)
				if c.do == nil {
					time.AfterFunc(time.Second, cancel)
				}
				res, err := client.Do(req)
				if err == nil {
					defer res.Body.Close()
					c.do(res, cancel)
				}
				time.Sleep(2 * ground.FeedStall)
				synctest.Wait()
				if took == 0 || took > c.most {
					t.Errorf("the handler took %v", took)
				}
			})
		})
	}
}
