// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/logtest"
)

// TestSaid: what a server wrote to its standard error stands beside the reason, once it has
// failed.
func TestSaid(t *testing.T) {
	var log logtest.Buffer
	f := New(Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	t.Cleanup(func() { _ = f.Close(context.Background()) })
	err := f.Set([]Server{{Name: "a", Identity: "1", Said: func() []string { return []string{"no such table"} },
		Config: func(string) gateway.Config { return gateway.Config{} },
		Dial:   func(context.Context) (wire.Conn, error) { return nil, errors.New("it ended") }}})
	if err != nil {
		t.Fatal(err)
	}
	f.get("a").lost(errors.New("the process ended"), 0)
	for _, want := range []string{"connection to the server lost", "the process ended", `standard_error="[no such table]"`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %s in %s", want, log.String())
		}
	}
	if got := f.Said("a"); len(got) != 1 || f.Said("b") != nil {
		t.Errorf("said %q", got)
	}
}

// TestStray: what a server writes to its standard output beside messages is why something is wrong with it, also while
// it works.
func TestStray(t *testing.T) {
	a := inside("a", "who")
	a.Stray = func() string { return "it writes lines" }
	f := fleetOf(t, Options{}, a, inside("b", "who"))
	if h := f.Health(); h[0].Why != "it writes lines" || h[1].Why != "" {
		t.Errorf("%+v", h)
	}
	f.get("a").failed(errors.New("it ended"))
	if h := f.Health(); h[0].Why != "it ended" {
		t.Errorf("%+v", h)
	}
}
