// SPDX-License-Identifier: Apache-2.0

package plug

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/platform/intake"
	"github.com/pellucid-mcp/pellucid/platform/intake/intaketest"
)

// TestBusy: whoever begins requests and ends none has half of the room, and others are
// served; a body that does not come is given up.
func TestBusy(t *testing.T) {
	i, err := gateway.NewInspector(gateway.Config{Sink: &counter{}})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Default: i, MaxBody: 128 << 10, Memory: intake.NewBudget(intake.BodyCost * 512 << 10), patience: time.Minute, Principal: func(r *http.Request) string { return r.Header.Get("X-Who") }}
	h, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	s := intaketest.Serve(t, h)
	begin := func(s *intaketest.Server, who string, size int) (*http.Response, <-chan *http.Response) {
		return s.Begin("/v1/result", []string{"X-Who: " + who, "Content-Type: application/json"}, size)
	}
	kept := 0
	for range 10 {
		resp, _ := begin(s, "hoarder", 64<<10)
		if resp == nil {
			kept++ // it is waited for
			continue
		}
		b, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "1" || !strings.Contains(string(b), `"code":"busy"`) {
			t.Errorf("%d %v %s", resp.StatusCode, resp.Header, b)
		}
		break
	}
	if kept != 4 {
		t.Errorf("%d requests wait", kept)
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/v1/scrub", strings.NewReader(`{"text":"`+strings.Repeat("x", 60<<10)+`"}`))
	req.Header = http.Header{"Content-Type": {"application/json"}, "X-Who": {"other"}}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("the other one: %d", resp.StatusCode)
	}

	o.patience = 300 * time.Millisecond
	if h, err = New(o); err != nil {
		t.Fatal(err)
	}
	resp, answered := begin(intaketest.Serve(t, h), "slow", 9)
	if resp == nil { // else it was given up before
		resp = <-answered
	}
	if resp == nil || resp.StatusCode != 400 {
		t.Errorf("who sends nothing: %+v", resp)
	}
}
