// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A kind is one attacker's loop: it attacks once, and is called again until the time is over. The connection
// numbers are of one attacker.
type kind struct {
	connections int // of each attacker
	once        func(ctx context.Context, s *session, n int) (status int, err error)
}

// kinds are the attacks.
var kinds = map[string]*kind{
	"large-requests": {16, func(_ context.Context, s *session, n int) (int, error) {
		path := []string{"/mcp/s", "/mcp", "/v1/scrub", "/v1/result"}[n%4]
		return statusOf(s.post(path, large))
	}},
	"large-answers": {16, func(_ context.Context, s *session, _ int) (int, error) {
		s.n++
		return statusOf(s.post("/mcp/s", fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"read","arguments":{"bytes":%d}}}`, s.n, 16<<20)))
	}},
	"schema-patterns": {4, func(_ context.Context, s *session, _ int) (int, error) {
		s.n++
		return statusOf(s.post("/mcp/s", fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"patterns","arguments":{}}}`, s.n)))
	}},
	"xray": {20, xray},
	"bad-tokens": {16, func(_ context.Context, s *session, n int) (int, error) {
		bad := &session{client: s.client, addr: s.addr, token: "bad-" + strconv.Itoa(n) + strings.Repeat("w3Rt9x", 6)}
		return statusOf(bad.post("/mcp/s", `{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	}},
	"slow-bodies": {128, slowBody},
	"held-results": {8, func(_ context.Context, s *session, _ int) (int, error) {
		s.n++
		return statusOf(s.post("/mcp/s", fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"hidden","arguments":{}}}`, s.n)))
	}},
	"sessions": {8, func(_ context.Context, s *session, _ int) (int, error) {
		s.id = ""
		return http.StatusOK, s.open()
	}},
}

// large is a request of 24 MiB.
var large = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{"bytes":1,"more":"` + strings.Repeat("m", 24<<20) + `"}}}`

func names() []string { return slices.Sorted(maps.Keys(kinds)) }

func statusOf(resp *http.Response, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// invisible is a text of 1 MiB of characters that show nothing: its page is longest.
var invisible = strings.Repeat("\u200b\u200c", 1<<20/6)

// xray posts a long text to the console, after signing in.
func xray(_ context.Context, s *session, _ int) (int, error) {
	post := func(path, kind string, body io.Reader) (int, error) {
		req, err := http.NewRequest(http.MethodPost, "http://"+s.addr+path, body)
		if err != nil {
			return 0, err
		}
		req.Header = http.Header{"Content-Type": {kind}, "Origin": {"http://" + s.addr}}
		return statusOf(s.client.Do(req))
	}
	if s.client.Jar == nil {
		jar, err := cookiejar.New(nil)
		if err != nil {
			return 0, err
		}
		own := *s.client
		own.Jar, own.CheckRedirect = jar, func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		s.client = &own
		if status, err := post("/console/login/token", "application/x-www-form-urlencoded", strings.NewReader(url.Values{"token": {s.token}}.Encode())); err != nil || status != http.StatusSeeOther {
			s.client.Jar = nil
			return status, err
		}
	}
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	part, err := form.CreateFormField("f")
	if err != nil {
		return 0, err
	}
	if _, err := io.WriteString(part, invisible); err != nil {
		return 0, err
	}
	form.Close()
	return post("/console/xray", form.FormDataContentType(), &b)
}

// slowBody announces a body and sends a byte of it now and then. Half of the connections show no valid token.
func slowBody(ctx context.Context, s *session, n int) (int, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.addr)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	who := s.token
	if n%2 == 0 {
		who = "bad" + who
	}
	path := []string{"/mcp/s", "/mcp", "/v1/result"}[n%3]
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: %d\r\n\r\n%s", path, s.addr, who, 16<<20, strings.Repeat(" ", 256<<10))
	for ctx.Err() == nil {
		if _, err := conn.Write([]byte(" ")); err != nil {
			return 0, nil // given up by the gateway
		}
		time.Sleep(500 * time.Millisecond)
	}
	return 0, nil
}

// Play attacks the gateway at addr for some time, and prints what was sent and how it was answered. It is what the
// process of the attackers runs.
func Play(ctx context.Context, name, addr string, d time.Duration, out io.Writer) error {
	k := kinds[name]
	if k == nil {
		return fmt.Errorf("attack: no attack %q", name)
	}
	ctx, stop := context.WithTimeout(ctx, d)
	defer stop()
	var mu sync.Mutex
	answers := map[int]int{}
	var work sync.WaitGroup
	for a := range attackers {
		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: k.connections}, Timeout: d}
		for i := range k.connections {
			work.Go(func() {
				s := &session{client: client, addr: addr, token: token("attacker-" + strconv.Itoa(a))}
				if name != "xray" && name != "sessions" && name != "slow-bodies" && name != "bad-tokens" {
					_ = s.open() // an attacker may be refused already
				}
				for n := i; ctx.Err() == nil; n += k.connections {
					status, err := k.once(ctx, s, n)
					mu.Lock()
					if err != nil {
						status = 0
					}
					answers[status]++
					mu.Unlock()
				}
			})
		}
	}
	done := make(chan struct{})
	go func() { defer close(done); work.Wait() }()
	select {
	case <-done:
	case <-time.After(d + time.Second): // what is under way is cut
	}
	mu.Lock()
	defer mu.Unlock()
	var all []string
	for _, status := range slices.Sorted(maps.Keys(answers)) {
		what := strconv.Itoa(status)
		if status == 0 {
			what = "cut"
		}
		all = append(all, fmt.Sprintf("%d × %s", answers[status], what))
	}
	_, err := fmt.Fprintln(out, strings.Join(all, ", "))
	return err
}
