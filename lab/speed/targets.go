// SPDX-License-Identifier: Apache-2.0

package speed

import "fmt"

// judge compares the figures with what was promised, every deterministic check on.
func (r *GatewayReport) judge() {
	r.judgePipes()
	for _, script := range scripts {
		for _, f := range r.Figures {
			if f.Transport == "http" && f.Script == script && f.Sessions == 1 && f.Way == checks {
				reverse := r.find(f, reverse)
				r.target(fmt.Sprintf("http, %s, %s, 1 session: added p50", script, sizeName(f.Bytes)),
					f.AddedP50, reverse.AddedP50+50, "us", "ReverseProxy's + 50 us = ")
			}
		}
	}
	for _, f := range r.Figures {
		if f.Transport != "http" || f.Script != scripts[0] || f.Bytes != 1<<10 || f.Way != checks {
			continue
		}
		reverse := r.find(f, reverse)
		name := fmt.Sprintf("http, 1 KiB, %d sessions: ", f.Sessions)
		if f.CPU > 0 {
			r.target(name+"proxy CPU a call", f.CPU, 1.5*reverse.CPU, "us", "1.5 x ReverseProxy = ")
		}
		if f.Sessions > 1 {
			want := 0.85 * reverse.Rate
			r.Targets = append(r.Targets, Target{Name: name + "calls/s", Met: f.Rate >= want,
				Want: fmt.Sprintf("0.85 x ReverseProxy = %.0f", want), Got: fmt.Sprintf("%.0f", f.Rate)})
		}
	}
	r.judgeMemory()
	if r.Events > 0 {
		r.Targets = append(r.Targets, Target{Name: "SSE calls of 64 KiB without an error", Want: "20000",
			Got: fmt.Sprintf("%d, %d failed", r.Events, r.Failed), Met: r.Events >= 20_000 && r.Failed == 0})
	}
}

func (r *GatewayReport) judgePipes() {
	for _, f := range r.Figures {
		if f.Transport != "stdio" || f.Way != checks {
			continue
		}
		want := 0.0
		switch f.Bytes {
		case 128, 1 << 10:
			want = 150
		case 10 << 10:
			want = 500
		case 100_000:
			want = 4000
		default:
			continue
		}
		r.target(fmt.Sprintf("stdio, %s, %s: added p50", f.Script, sizeName(f.Bytes)), f.AddedP50, want, "us", "")
	}
}

func (r *GatewayReport) judgeMemory() {
	most := map[bool]int64{} // by whether results are larger than 64 KiB
	for _, f := range r.Figures {
		if f.Way == checks {
			large := f.Bytes > 100_000
			most[large] = max(most[large], f.RSS)
		}
	}
	for _, large := range []bool{false, true} {
		if most[large] == 0 {
			continue
		}
		name := "RSS, results up to 100 kB"
		if large {
			name = "RSS, results of more than 100 kB"
		}
		r.target(name, float64(most[large])/1e6, 40, "MB", "")
	}
}

// target adds one that is met by no more than want.
func (r *GatewayReport) target(name string, got, want float64, unit, why string) {
	r.Targets = append(r.Targets, Target{Name: name, Met: got <= want,
		Want: fmt.Sprintf("<= %s%.0f %s", why, want, unit), Got: fmt.Sprintf("%.0f %s", got, unit)})
}

// find returns the figure of another way in the same case.
func (r *GatewayReport) find(f Figure, way string) Figure {
	for _, g := range r.Figures {
		if g.Transport == f.Transport && g.Script == f.Script && g.Bytes == f.Bytes && g.Sessions == f.Sessions && g.Way == way {
			return g
		}
	}
	return Figure{}
}

// sizeName is how tables write a size.
func sizeName(size int) string {
	switch {
	case size >= 1<<20 && size%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", size>>20)
	case size >= 1<<10 && size%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", size>>10)
	}
	return fmt.Sprintf("%d B", size)
}
