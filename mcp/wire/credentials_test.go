// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// passes are credentials whose value changes where it is refused.
type passes struct {
	mu         sync.Mutex
	value      string
	next       []string
	challenges []string
}

func (p *passes) Authorize(context.Context) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.value
}

func (p *passes) Refused(_ context.Context, value string, status int, challenges []string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.challenges = append(p.challenges, fmt.Sprint(value, " ", status, " ", strings.Join(challenges, ";")))
	if status != http.StatusUnauthorized || len(p.next) == 0 {
		return ""
	}
	p.value, p.next = p.next[0], p.next[1:]
	return p.value
}

// TestCredentials: a request goes once more with what the credentials say after 401, whole; not after 403, not
// twice, never to where a redirect leads, and not in the place of a configured header.
func TestCredentials(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		header  string
		pass    *passes
		accepts string
		status  int // of a refusal
		want    []string
		code    int // of the answer; 0: a result
	}{
		{"accepted", "", &passes{value: "Bearer a"}, "Bearer a", 401, []string{"Bearer a"}, 0},
		{"renewed", "", &passes{value: "Bearer a", next: []string{"Bearer b"}}, "Bearer b", 401, []string{"Bearer a", "Bearer b"}, 0},
		{"made meanwhile", "", &passes{next: []string{"Bearer b"}}, "Bearer b", 401, []string{"", "Bearer b"}, 0},
		{"refused twice", "", &passes{value: "Bearer a", next: []string{"Bearer b", "Bearer c"}}, "Bearer c", 401, []string{"Bearer a", "Bearer b"}, codeUnauthorized},
		{"the same again", "", &passes{value: "Bearer a", next: []string{"Bearer a"}}, "-", 401, []string{"Bearer a"}, codeUnauthorized},
		{"no login", "", &passes{}, "-", 401, []string{""}, codeUnauthorized},
		{"forbidden", "", &passes{value: "Bearer a", next: []string{"Bearer b"}}, "Bearer b", 403, []string{"Bearer a"}, codeUnauthorized},
		{"redirect", "", &passes{value: "Bearer a", next: []string{"Bearer b"}}, "-", 307, []string{"Bearer a"}, codeStatus},
		{"configured header", "Bearer own", &passes{value: "Bearer a", next: []string{"Bearer b"}}, "Bearer b", 401, []string{"Bearer own"}, codeUnauthorized},
	} {
		t.Run(tt.name, func(t *testing.T) {
			elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
			defer elsewhere.Close()
			var got []string
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if !strings.Contains(string(body), `"tools/list"`) {
					return // the session ends
				}
				got = append(got, r.Header.Get("Authorization"))
				if r.Header.Get("Authorization") != tt.accepts {
					w.Header().Set("WWW-Authenticate", `Bearer error="x"`)
					w.Header().Set("Location", elsewhere.URL)
					w.WriteHeader(tt.status)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{}}`)
			}))
			defer srv.Close()
			opt := HTTPOptions{Credentials: tt.pass, Header: http.Header{}}
			if tt.header != "" {
				opt.Header.Set("Authorization", tt.header)
			}
			conn, err := NewHTTP(srv.URL, opt)
			if err != nil {
				t.Fatal(err)
			}
			r := Pull(conn)
			defer r.Close()
			m, err := Decode([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`), opt.Limits)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Write(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			answer, err := r.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			code, _ := answer.Error.Get("code").Int64()
			if !slices.Equal(got, tt.want) || int(code) != tt.code {
				t.Errorf("sent %q, want %q; answer %s", got, tt.want, answer.Append(nil))
			}
			if strings.Contains(string(answer.Append(nil)), "Bearer") {
				t.Errorf("the client reads %s", answer.Append(nil))
			}
		})
	}
}
