package gateway

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/frame"
	"github.com/pellucid-mcp/pellucid/internal/wire"
)

// rawUpstream answers every call with a text of size octets, as a stream or a body.
func rawUpstream(size int, stream bool) http.Handler {
	text := strings.Repeat("lorem ipsum dolor sit amet, ", size/28+1)[:size]
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		m, err := wire.Decode(body, testLimits)
		if err != nil || m.Kind != wire.Request {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		result := `{"resultType":"complete","tools":[{"name":"t","inputSchema":{"type":"object"}}]}`
		if m.Method == "tools/call" {
			result = `{"resultType":"complete","content":[{"type":"text","text":"` + text + `"}]}`
		}
		raw := wire.AppendResult(nil, m.ID, []byte(result))
		if stream {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "event: message\ndata: %s\n\n", raw)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write(raw)
	})
}

// TestFrontSpeed prints what lies between a client and a raw upstream in time:
// nothing, Go's ReverseProxy, and the gateway. $PELLUCID_SPEED says how many
// rounds; on a machine that is busy otherwise the figures say little.
func TestFrontSpeed(t *testing.T) {
	rounds, _ := strconv.Atoi(os.Getenv("PELLUCID_SPEED"))
	if rounds == 0 {
		t.Skip("$PELLUCID_SPEED is not set")
	}
	for _, stream := range []bool{false, true} {
		for _, size := range []int{128, 1 << 10, 10 << 10, 64 << 10, 1 << 20} {
			n := rounds
			if size > 1<<18 {
				n = rounds / 10
			}
			speed(t, size, stream, n)
		}
	}
}

func speed(t *testing.T, size int, stream bool, rounds int) {
	upstream := httptest.NewServer(rawUpstream(size, stream))
	defer upstream.Close()
	target, _ := url.Parse(upstream.URL)
	reverse := httptest.NewServer(buffered(httputil.NewSingleHostReverseProxy(target)))
	defer reverse.Close()
	front := wire.NewFront(wire.FrontOptions{Accept: func(ctx context.Context, s *wire.FrontSession) error {
		up, err := wire.NewHTTP(upstream.URL, wire.HTTPOptions{Limits: testLimits})
		if err != nil {
			return err
		}
		return Run(ctx, s, up, Config{Name: "srv", Sink: NewLines(io.Discard), Key: frame.Key{}})
	}})
	pellucid := httptest.NewServer(front)
	defer func() {
		front.Shutdown(context.Background())
		pellucid.Close()
	}()
	names := []string{"direct", "ReverseProxy", "pellucid"}
	times := make([][]time.Duration, len(names))
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for i := range rounds + rounds/10 {
		for k, u := range []string{upstream.URL, reverse.URL, pellucid.URL} {
			took := timedCall(t, client, u, size)
			if i >= rounds/10 {
				times[k] = append(times[k], took)
			}
		}
	}
	line := fmt.Sprintf("%7d octets, stream %-5t", size, stream)
	for k, name := range names {
		slices.Sort(times[k])
		line += fmt.Sprintf("  %s %v", name, times[k][len(times[k])/2].Round(time.Microsecond))
	}
	p50 := func(k int) time.Duration { return times[k][len(times[k])/2] }
	t.Logf("%s  added %v beside %v", line, (p50(2) - p50(0)).Round(time.Microsecond), (p50(1) - p50(0)).Round(time.Microsecond))
}

// buffered reads a request whole before it goes on: ReverseProxy alone cuts some
// answers short.
func buffered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

func timedCall(t *testing.T, client *http.Client, u string, size int) time.Duration {
	req, _ := http.NewRequest(http.MethodPost, u, strings.NewReader(
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`))
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"t"}}
	start := time.Now()
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	took := time.Since(start)
	if resp.StatusCode != 200 || err != nil || n < int64(size) {
		t.Fatalf("%d, %d octets, %v", resp.StatusCode, n, err)
	}
	return took
}
