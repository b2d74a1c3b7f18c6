// SPDX-License-Identifier: Apache-2.0

package speed

import (
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// The test program plays the roles of a measurement itself.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "play" {
		role := Role{Name: os.Args[2]}
		if role.Name == "again" { // a layer of a test
			role.Name = checks
		}
		switch {
		case len(os.Args) > 4 && os.Args[3] == "url":
			role.Upstream = os.Args[4]
		case len(os.Args) > 4 && os.Args[3] == "--":
			role.Command = os.Args[4:]
		}
		play := Play
		if role.Name == floor {
			play = func(role Role, in io.Reader, _, errs io.Writer) error { return PlayFloor(role, in, errs) }
		}
		if err := play(role, os.Stdin, os.Stdout, os.Stderr); err != nil {
			io.WriteString(os.Stderr, err.Error()+"\n")
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func self(t *testing.T) func(Role) []string {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return func(r Role) []string {
		args := []string{exe, "play", r.Name}
		switch {
		case r.Upstream != "":
			args = append(args, "url", r.Upstream)
		case len(r.Command) > 0:
			args = append(append(args, "--"), r.Command...)
		}
		return args
	}
}

func TestMeasureGateway(t *testing.T) {
	report, err := MeasureGateway(t.Context(), GatewayOptions{
		Self: self(t), Rounds: 1, Slice: 2 * time.Millisecond, Sessions: []int{1, 2}, Bytes: []int{128, 1 << 10}, Events: 16})
	if err != nil {
		t.Fatal(err)
	}
	// 2 scripts × 2 sizes × 2 numbers of sessions over HTTP; one size more, and one session, over pipes.
	if want := (2*2*2 + 2*3) * len(Ways); len(report.Figures) != want {
		t.Errorf("%d figures, want %d", len(report.Figures), want)
	}
	for _, f := range report.Figures {
		if f.Calls == 0 || f.P50 <= 0 || f.P99 < f.P50 || f.Rate <= 0 {
			t.Errorf("nothing measured: %+v", f)
		}
		if (f.Way == Direct) != (f.RSS == 0) && readUsage().RSS != 0 {
			t.Errorf("memory: %+v", f)
		}
	}
	if report.Events != 16 || report.Failed != 0 {
		t.Errorf("%d events, %d failed", report.Events, report.Failed)
	}
	if len(report.Targets) == 0 {
		t.Error("no target was judged")
	}
}

// TestMeasureLayers: what the caller plays is measured beside the ways, over HTTP only,
// and the pause between calls is nobody's time.
func TestMeasureLayers(t *testing.T) {
	const pause = 200 * time.Millisecond
	report, err := MeasureGateway(t.Context(), GatewayOptions{Self: self(t), Rounds: 1, Slice: 3 * pause, Pause: pause,
		Sessions: []int{1}, Bytes: []int{128}, Layers: []Layer{{"again", "/"}}})
	if err != nil {
		t.Fatal(err)
	}
	if want := len(scripts) * (len(Ways) + 1); len(report.Figures) != want || report.Events != 0 || report.Targets != nil {
		t.Errorf("%d figures, want %d; %d events, %v", len(report.Figures), want, report.Events, report.Targets)
	}
	for _, f := range report.Figures {
		if f.Calls == 0 || f.Calls > 4 || f.P50 > 190_000 {
			t.Errorf("%s: %d calls, p50 %v us", f.Way, f.Calls, f.P50)
		}
	}
	if last := report.Figures[len(report.Figures)-1]; last.Way != "again" {
		t.Errorf("the last is %s", last.Way)
	}
}

func TestMeasureGatewayRefuses(t *testing.T) {
	for _, o := range []GatewayOptions{
		{}, {Self: self(t), Sessions: []int{0}}, {Self: self(t), Bytes: []int{1 << 30}},
		{Self: func(Role) []string { return []string{os.Args[0], "play", "nobody"} }},
	} {
		if _, err := MeasureGateway(t.Context(), o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
}

func TestJudge(t *testing.T) {
	figures := func(added, cpu, rate float64, rss int64) *GatewayReport {
		base := Figure{Transport: "http", Script: "ascii", Bytes: 1 << 10, Sessions: 8}
		one := base
		one.Sessions = 1
		with := func(f Figure, way string, added, cpu, rate float64, rss int64) Figure {
			f.Way, f.AddedP50, f.CPU, f.Rate, f.RSS = way, added, cpu, rate, rss
			return f
		}
		r := &GatewayReport{Events: 20_000, Figures: []Figure{
			with(one, reverse, 100, 100, 1000, 1), with(one, checks, added, cpu, rate, rss),
			with(base, reverse, 100, 100, 1000, 1), with(base, checks, added, cpu, rate, rss),
			{Transport: "stdio", Script: "ascii", Bytes: 128, Sessions: 1, Way: checks, AddedP50: added, RSS: rss},
		}}
		r.judge()
		return r
	}
	for _, target := range figures(149, 150, 850, 40e6).Targets {
		if !target.Met {
			t.Errorf("missed: %+v", target)
		}
	}
	missed := 0
	for _, target := range figures(151, 151, 849, 41e6).Targets {
		if !target.Met {
			missed++
		} else if !strings.Contains(target.Name, "SSE") {
			t.Errorf("met: %+v", target)
		}
	}
	if missed != 6 { // stdio, added p50, CPU twice, calls/s, memory
		t.Errorf("%d missed", missed)
	}
}

func TestSample(t *testing.T) {
	for _, script := range scripts {
		for _, n := range []int{0, 1, 2, 128, 4096, 100_000} {
			if s := sample(script, n); len(s) != n || strings.ContainsRune(s, '\ufffd') {
				t.Errorf("%s, %d: %d bytes", script, n, len(s))
			}
		}
	}
}
