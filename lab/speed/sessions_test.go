// SPDX-License-Identifier: Apache-2.0

package speed

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/terminal"

	"github.com/pellucid-mcp/pellucid/lab/measured"
)

// TestMeasureSessions measures a few sessions of the program itself: what it looks at is
// that every figure is there and plausible, never how good it is.
func TestMeasureSessions(t *testing.T) {
	switch {
	case runtime.GOOS != "linux":
		t.Skip("only Linux has /proc")
	case testing.Short():
		t.Skip("builds the program")
	}
	bin := filepath.Join(t.TempDir(), "pellucid")
	if out, err := exec.Command("go", "build", "-o", bin, "github.com/pellucid-mcp/pellucid/cmd/pellucid").CombinedOutput(); err != nil {
		t.Fatalf("build: %v: %s", err, out)
	}
	const n = 20
	r, err := MeasureSessions(t.Context(), SessionsOptions{Self: self(t), Pellucid: bin, Sessions: n, Openers: 4,
		Settle: time.Second, Lists: 3, Servers: 3, Tools: 4, Calls: 5})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Idle) != 5 || r.Took <= 0 || r.CPUs < 1 || r.Asked != n {
		t.Errorf("%d ways, %v, %d CPUs, %d sessions asked", len(r.Idle), r.Took, r.CPUs, r.Asked)
	}
	for _, f := range r.Idle {
		if f.Sessions != n || f.Rate <= 0 || f.P50 <= 0 || f.P99 < f.P50 {
			t.Errorf("%s: %d sessions, %v a second, p50 %v, p99 %v", f.Way, f.Sessions, f.Rate, f.P50, f.P99)
		}
		for _, m := range []measured.Memory{f.First, f.All} {
			if m.Anon <= 0 || m.RSS <= m.Anon || m.PSS <= 0 || m.PSS > 2*m.RSS || m.Peak < m.RSS {
				t.Errorf("%s: memory %+v", f.Way, m)
			}
		}
		streams, connections, goroutines := n, 2*n, 4.0
		switch f.Way {
		case floor:
			streams, connections, goroutines = 0, n, 2
		case upAlone:
			streams, connections, goroutines = 0, n, 2
		}
		if f.Upstream != streams || f.Files < connections || f.Files > 4*n+100 {
			t.Errorf("%s: %d streams of the server, want %d; %d files", f.Way, f.Upstream, streams, f.Files)
		}
		if f.Goroutines < goroutines || f.Goroutines > 8 || len(f.Waiting) < 2 {
			t.Errorf("%s: %v goroutines a session, want %v to 8: %v", f.Way, f.Goroutines, goroutines, f.Waiting)
		}
		for _, name := range []string{"tell", "tick", "writeServer"} {
			if n := f.Waiting["boundary/gateway.(*relay)."+name]; n != 0 {
				t.Errorf("%s: an idle session has a goroutine in %s", f.Way, name)
			}
		}
	}
	if l := r.List; l.Tools != 12 || l.First <= 0 || l.P50 <= 0 || l.P99 < l.P50 || l.Sum50 <= 0 || l.Sum99 < l.Sum50 {
		t.Errorf("lists: %+v", l)
	}
	if l := r.Large; l.Calls != 5 || l.AtOnce != 5 || l.Peak < l.Before.RSS/2 || l.Before.RSS <= 0 {
		t.Errorf("large results: %+v", l)
	}
	var text strings.Builder
	if err := r.Print(&text, terminal.Palette{}); err != nil {
		t.Fatal(err)
	}
	if err := r.PrintWaiting(&text, terminal.Palette{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{floor, proxyFull, upAlone, upStream, upAllOn, "KB/further", "12 tools of 3 servers", "peak MB",
		"a further session, no stream of the server", "tools/list of 12 tools, p99", "mcp/wire.(*pump).run"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the tables do not hold %q:\n%s", want, text.String())
		}
	}
}

func TestMeasureSessionsRefuses(t *testing.T) {
	for _, o := range []SessionsOptions{
		{}, {Self: self(t)}, {Pellucid: os.Args[0]},
		{Self: self(t), Pellucid: os.Args[0], Sessions: 1},
		{Self: self(t), Pellucid: os.Args[0], Sessions: 1 << 20},
		{Self: self(t), Pellucid: os.Args[0], Openers: -1},
	} {
		if _, err := MeasureSessions(t.Context(), o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
}

// TestJudgeSessions demands that each goal can be met, and missed.
func TestJudgeSessions(t *testing.T) {
	report := func(kb, rate, mb, ms float64) *SessionsReport {
		r := &SessionsReport{List: ListFigure{P99: ms}, Large: LargeFigure{Peak: int64(mb * 1e6)}}
		for _, way := range []string{floor, proxyFull, upAlone, upStream, upAllOn} {
			r.Idle = append(r.Idle, IdleFigure{Way: way, Further: kb, Rate: rate, First: measured.Memory{RSS: int64(mb * 1e6)}})
		}
		r.judge()
		return r
	}
	good, bad := report(40, 2000, 45, 30).Targets, report(76, 1999, 61, 31).Targets
	if len(good) != 9 || len(bad) != 9 {
		t.Errorf("%d and %d goals, want 9", len(good), len(bad))
	}
	for i := range good {
		if !good[i].Met || bad[i].Met {
			t.Errorf("%+v should be met, %+v missed", good[i], bad[i])
		}
	}
}

// TestPerSession leaves out what the process has once.
func TestPerSession(t *testing.T) {
	if all, waiting := perSession(map[string]int{"each": 8, "once": 1}, 4); all != 2 || len(waiting) != 1 || waiting["each"] != 2 {
		t.Errorf("a session has %v goroutines: %v", all, waiting)
	}
}
