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

// A kind is an attack. Each connection of an attacker calls once until the time is over, with the numbers of its
// requests.
type kind struct {
	connections int // of each attacker
	once        func(ctx context.Context, s *session, n int) (status int, err error)
}

// kinds are the attacks.
var kinds = map[string]*kind{
	"large-requests": {16, func(_ context.Context, s *session, n int) (int, error) {
		path := []string{"/mcp/s", "/mcp", "/v1/scrub", "/v1/result"}[n%4]
		return statusOf(s.Send(s.base+path, large))
	}},
	"large-answers":   {16, calling("read", 16<<20)},
	"schema-patterns": {4, calling("patterns", 0)},
	"xray":            {20, xray},
	"bad-tokens": {16, func(_ context.Context, s *session, n int) (int, error) {
		bad := newSession(s.Client, "", "bad-"+strconv.Itoa(n)+strings.Repeat("w3Rt9x", 6))
		return statusOf(bad.Send(s.URL, []byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)))
	}},
	"slow-bodies":  {128, slowBody},
	"held-results": {8, calling("hidden", 0)},
	"sessions": {8, func(_ context.Context, s *session, _ int) (int, error) {
		return http.StatusOK, s.Open()
	}},
}

// calling returns an attack of calls of a tool.
func calling(tool string, size int) func(context.Context, *session, int) (int, error) {
	return func(_ context.Context, s *session, _ int) (int, error) {
		return statusOf(s.Send(s.URL, s.callBody(tool, size)))
	}
}

// large is a request of 24 MiB.
var large = []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{"bytes":1,"more":"` + strings.Repeat("m", 24<<20) + `"}}}`)

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
		req, err := http.NewRequest(http.MethodPost, s.base+path, body)
		if err != nil {
			return 0, err
		}
		req.Header = http.Header{"Content-Type": {kind}, "Origin": {s.base}}
		return statusOf(s.Client.Do(req))
	}
	if s.Client.Jar == nil {
		jar, err := cookiejar.New(nil)
		if err != nil {
			return 0, err
		}
		own := *s.Client
		own.Jar, own.CheckRedirect = jar, func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		s.Client = &own
		if status, err := post("/console/login/token", "application/x-www-form-urlencoded", strings.NewReader(url.Values{"token": {s.Token}}.Encode())); err != nil || status != http.StatusSeeOther {
			s.Client.Jar = nil
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
	addr := strings.TrimPrefix(s.base, "http://")
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	who := s.Token
	if n%2 == 0 {
		who = "bad" + who
	}
	path := []string{"/mcp/s", "/mcp", "/v1/result"}[n%3]
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: %d\r\n\r\n%s", path, addr, who, 16<<20, strings.Repeat(" ", 256<<10))
	for ctx.Err() == nil {
		if _, err := conn.Write([]byte(" ")); err != nil {
			return 0, nil // given up by the gateway
		}
		time.Sleep(500 * time.Millisecond)
	}
	return 0, nil
}

// Play attacks the gateway at addr for some time, and prints how it has answered. The process of the attackers
// runs it.
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
				s := newSession(client, addr, token("attacker-"+strconv.Itoa(a)))
				if name != "xray" && name != "sessions" && name != "slow-bodies" && name != "bad-tokens" {
					_ = s.Open() // an attacker may be refused already
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
	case <-time.After(d + time.Second): // requests under way are cut
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
