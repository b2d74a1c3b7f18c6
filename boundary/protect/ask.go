// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Bounds of asking remote servers whether they want a login.
const (
	askTime  = 5 * time.Second // for one server
	askMost  = 256             // servers
	askAhead = 8               // at the same time
)

// AskRemotes asks each remote server of the files that has no credential in its entry once, as a
// client does when it starts, and returns options that know the answers. A server that does
// not answer within 5 seconds is as unknown as before.
func (o Options) AskRemotes(ctx context.Context, files []Target) Options {
	known := o.Ask
	answers := map[string]Login{}
	var ask []string
	o.Ask = func(url string) Login {
		if known != nil {
			if answer := known(url); answer != Unknown {
				return answer
			}
		}
		if _, found := answers[url]; !found && len(ask) < askMost {
			answers[url], ask = Unknown, append(ask, url)
		}
		return answers[url]
	}
	for _, t := range files {
		_, _ = o.Protect(t.Path, t.Format) // what is wrong with a file is reported when it is changed
	}
	client := &http.Client{
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, MaxResponseHeaderBytes: 64 << 10, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	var all sync.WaitGroup
	var lock sync.Mutex
	slots := make(chan struct{}, askAhead)
	for _, url := range ask {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			answer := askRemote(ctx, client, url)
			lock.Lock()
			defer lock.Unlock()
			answers[url] = answer
		})
	}
	all.Wait()
	return o
}

// The first message of a client, for the server that speaks streamable HTTP.
const askMessage = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"pellucid","version":"1"}}}`

// askRemote says what one server answers. Only its status is read.
func askRemote(ctx context.Context, client *http.Client, url string) Login {
	ctx, stop := context.WithTimeout(ctx, askTime)
	defer stop()
	for _, method := range []string{http.MethodPost, http.MethodGet} { // GET: the transport of 2024-11-05
		body := ""
		if method == http.MethodPost {
			body = askMessage
		}
		req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
		if err != nil {
			return Unknown
		}
		req.Header.Set("Accept", "application/json, text/event-stream")
		if body != "" {
			req.Header.Set("Content-Type", "application/json")
		}
		resp, err := client.Do(req)
		if err != nil {
			return Unknown
		}
		resp.Body.Close()
		switch {
		case resp.StatusCode == http.StatusUnauthorized:
			return AsksForLogin
		case resp.StatusCode/100 == 2:
			return Open
		case resp.StatusCode != http.StatusNotFound && resp.StatusCode != http.StatusMethodNotAllowed:
			return Unknown
		}
	}
	return Unknown
}
