// SPDX-License-Identifier: Apache-2.0

package llm

import (
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// embedder asks a server that answers with what f makes of the body of a request.
func embedder(t *testing.T, f func(body string) (status int, answer string)) (*Embedder, *atomic.Int64) {
	t.Helper()
	asked := &atomic.Int64{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		body, err := io.ReadAll(r.Body)
		if err != nil || r.URL.Path != "/v1/embeddings" || r.Header.Get("Authorization") != "Bearer k" {
			t.Errorf("%v, %s, %q", err, r.URL.Path, r.Header.Get("Authorization"))
		}
		status, answer := f(string(body))
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		io.WriteString(w, answer)
	}))
	t.Cleanup(s.Close)
	m, err := NewEmbedder(Options{BaseURL: s.URL + "/v1", Model: "e", Key: NewKey("test", func() (string, error) { return "k", nil }), Retries: 1, Backoff: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m, asked
}

func TestEmbedder(t *testing.T) {
	m, asked := embedder(t, func(body string) (int, string) {
		var doc strictjson.Doc
		if err := doc.Reset([]byte(body), strictjson.Limits{}); err != nil || len(body) > 2*maxEmbedded {
			t.Errorf("%v: %d bytes", err, len(body))
		}
		v := `[0,2]`
		if strings.Contains(body, "east") {
			v = `[3e200,4e200]`
		}
		return 200, `{"object":"list","data":[{"object":"embedding","index":0,"embedding":` + v + `}],"model":"e","usage":{"prompt_tokens":2,"total_tokens":2}}`
	})
	long := strings.Repeat("\u00e9", maxEmbedded)
	for _, c := range []struct {
		x, y string
		want float64
	}{{"east", "east", 1}, {"east", "west \" \u2028", 0.8}, {"east", "north", 0.8}, {long, long + "x", 1}} {
		got, err := m.Similarity(t.Context(), c.x, c.y)
		if err != nil || math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%v, %v", got, err)
		}
	}
	if n := asked.Load(); n != 4 { // each text once; the two long ones are one
		t.Errorf("asked %d times", n)
	}
}

// TestEmbedderFails: what is no embedding is an error with a code, and nothing of it is kept.
func TestEmbedderFails(t *testing.T) {
	for _, c := range []struct {
		status int
		answer string
		code   Code
		asked  int64
	}{
		{500, `{"error":{"message":"secret"}}`, CodeServer, 2},
		{401, `{}`, CodeUnauthorized, 1},
		{200, `{`, CodeMalformed, 1},
		{200, `{"data":[]}`, CodeMalformed, 1},
		{200, `{"data":[{"embedding":[]}]}`, CodeMalformed, 1},
		{200, `{"data":[{"embedding":["1"]}]}`, CodeMalformed, 1},
		{200, `{"data":[{"embedding":[0,0]}]}`, CodeMalformed, 1},
		{200, `{"data":[{"embedding":"AAAA"}]}`, CodeMalformed, 1},
		{200, `{"data":[{"embedding":[1]},{"embedding":[1]}]}`, CodeMalformed, 1},
		{200, `{"data":[{"embedding":[1` + strings.Repeat(",1", maxDimensions) + `]}]}`, CodeMalformed, 1},
		{200, `{"error":{"message":"secret"}}`, CodeMalformed, 1},
	} {
		m, asked := embedder(t, func(string) (int, string) { return c.status, c.answer })
		_, err := m.Similarity(t.Context(), "x", "x")
		e, ok := errors.AsType[*Error](err)
		if !ok || e.Code != c.code || strings.Contains(err.Error(), "secret") || asked.Load() != c.asked || len(m.kept) != 0 {
			t.Errorf("%d %.60s: %v, asked %d times", c.status, c.answer, err, asked.Load())
		}
	}
}

// TestEmbedderShapes: vectors of different sizes cannot be compared.
func TestEmbedderShapes(t *testing.T) {
	m, _ := embedder(t, func(body string) (int, string) {
		return 200, `{"data":[{"embedding":[1` + strings.Repeat(",1", strings.Count(body, "x")) + `]}]}`
	})
	if _, err := m.Similarity(t.Context(), "a", "xx"); err == nil {
		t.Error("no error")
	}
}

// FuzzVector reads bytes as the answer of an embeddings endpoint: what is read has length 1.
func FuzzVector(f *testing.F) {
	f.Add([]byte(`{"data":[{"embedding":[1e308,-1e308,1e-320]}]}`))
	f.Add([]byte(`{"data":[{"embedding":[0.1,2]}],"usage":{"prompt_tokens":1}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		v, err := parseVector(body)
		if err != nil {
			return
		}
		sum := 0.0
		for _, x := range v {
			sum += x * x
		}
		if math.Abs(sum-1) > 1e-6 {
			t.Fatalf("length %v", sum)
		}
	})
}
