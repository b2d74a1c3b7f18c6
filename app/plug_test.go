// SPDX-License-Identifier: Apache-2.0

package app

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUpPlug: who may call, and that a configured server's rules are used.
func TestUpPlug(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PELLUCID_STATE", filepath.Join(dir, "state"))
	write := func(name, content string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const may, mayNot = "k3J9x0Qm7ZpR2vT8wL5nB4cY6dF1gH0s", "s0Hg1Fd6Yc4Bn5Lw8Tv2Rp7Zm0Qx9J3k"
	write("may", may)
	write("maynot", mayNot)
	write("tokens.json", `{"tokens": [{"principal": "a", "scopes": ["plug"], "token": "file:`+filepath.ToSlash(filepath.Join(dir, "may"))+`"},
{"principal": "b", "scopes": ["other"], "token": "file:`+filepath.ToSlash(filepath.Join(dir, "maynot"))+`"}]}`)
	write("pellucid.yaml", "version: 1\nauth: {tokens: file:tokens.json}\nservers:\n  files:\n    command: [\"true\"]\n"+
		"    tools: {read: {frame: meta}, rm: {allow: false}}\n")
	src, err := FileSource(filepath.Join(dir, "pellucid.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := OpenGateway(GatewayOptions{Stderr: io.Discard, Database: os.Getenv("PELLUCID_DB")}, src)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	post := func(path, token, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1"+path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		w := httptest.NewRecorder()
		b.ServeHTTP(w, r)
		return w
	}
	result := func(server, tool string) string {
		return `{"server":"` + server + `","tool":"` + tool + `","result":{"content":[{"type":"text","text":"zzz"}]}}`
	}
	for _, tt := range []struct {
		name, path, token, body string
		status                  int
		holds                   string
	}{
		{"nobody", "/v1/scrub", "", `{"text":""}`, 401, "Unauthorized"},
		{"without the scope", "/v1/scrub", mayNot, `{"text":""}`, 403, ""},
		{"without the scope, Docker's", "/v1/interceptors/docker/after", mayNot, `{"content":[]}`, 403, ""},
		{"scrub", "/v1/scrub", may, `{"text":"a\u202e"}`, 200, `"clean":"a"`},
		{"a rule of its own", "/v1/result", may, result("files", "read"), 200, `"text":"zzz"`},
		{"the server's rule", "/v1/result", may, result("files", "other"), 200, `server=\"files\"`},
		{"denied", "/v1/result", may, result("files", "rm"), 200, `"withheld"`},
		{"another server", "/v1/result", may, result("elsewhere", "read"), 200, `server=\"elsewhere\"`},
		{"Docker's", "/v1/interceptors/docker/after?server=files&tool=read", may, `{"content":[{"type":"text","text":"zzz"}]}`, 200, `"text":"zzz"`},
	} {
		w := post(tt.path, tt.token, tt.body)
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.holds) {
			t.Errorf("%s: %d %s", tt.name, w.Code, w.Body)
		}
		// An answer that is not empty and no JSON is what fails a call at Docker's.
		if w.Code != 200 && (w.Body.Len() == 0 || strings.HasPrefix(w.Body.String(), "{")) {
			t.Errorf("%s: %q would be consent", tt.name, w.Body)
		}
	}
}
