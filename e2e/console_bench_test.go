// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// resident is the memory of a process that is its own, in bytes: the pages of files, as the binary, do not count.
func resident(b *testing.B, pid int) int64 {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Skip("only Linux says how much memory a process has")
	}
	m := regexp.MustCompile(`RssAnon:\s+(\d+) kB`).FindSubmatch(status)
	if m == nil {
		b.Fatal("the kernel does not say RssAnon")
	}
	n, err := strconv.ParseInt(string(m[1]), 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return n << 10
}

// A visitor is a person with an open page of the console.
type visitor struct {
	client *http.Client
	base   string
}

// visit signs in by a one-time link.
func (in *install) visit(b *testing.B, base string) *visitor {
	b.Helper()
	cmd := exec.Command(in.bin, "console", "--link", "--url", base)
	cmd.Env = in.env()
	said, err := cmd.CombinedOutput()
	m := regexp.MustCompile(`\S+/console/link\?t=([\w-]+)`).FindSubmatch(said)
	if err != nil || m == nil {
		b.Fatalf("console link: %v, %s", err, said)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		b.Fatal(err)
	}
	v := &visitor{client: &http.Client{Jar: jar}, base: base}
	q, err := http.NewRequest(http.MethodPost, base+"/console/link", strings.NewReader(url.Values{"t": {string(m[1])}}.Encode()))
	if err != nil {
		b.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	q.Header.Set("Origin", base)
	res, err := v.client.Do(q)
	if err != nil {
		b.Fatal(err)
	}
	io.Copy(io.Discard, res.Body)
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		b.Fatalf("the link signs in with %s", res.Status)
	}
	return v
}

// open opens the overview.
func (v *visitor) open(b *testing.B) {
	b.Helper()
	res, err := v.client.Get(v.base + "/console/overview")
	if err != nil || res.StatusCode != http.StatusOK {
		b.Fatal(err, res)
	}
	io.Copy(io.Discard, res.Body)
	res.Body.Close()
}

// BenchmarkConsoleBeside prints how much memory an idle console adds to `pellucid up`, and whether an open page slows
// the calls of the gateway: three processes take turns, without a console, with one, and with one and an open page.
// Its own loop does not count: run it with -benchtime 1x.
func BenchmarkConsoleBeside(b *testing.B) {
	const sessions, length = 8, 2 * time.Second
	rounds := 8
	if n, err := strconv.Atoi(os.Getenv("PELLUCID_BENCH_ROUNDS")); err == nil && n > 0 {
		rounds = n
	}
	upstream := httptest.NewServer(plainServer(quote(strings.Repeat("A kilobyte of plain text. ", 40))))
	defer upstream.Close()
	http.DefaultTransport.(*http.Transport).MaxIdleConnsPerHost = 4 * sessions
	var all []*contender
	memory := map[string]int64{}
	for _, c := range []struct{ name, config string }{{"no console", ""}, {"console", "console: {}\n"}, {"open page", "console: {}\n"}} {
		in := newInstall(b)
		base, cmd := in.serveUp(b, "version: 1\nhttp: {rate: 0, burst: 1000000}\nevidence: {mode: best-effort}\n"+c.config+"servers:\n  s: {url: "+upstream.URL+"}\n")
		if c.name == "open page" {
			in.visit(b, base).open(b)
		}
		time.Sleep(3 * time.Second) // it is idle
		memory[c.name] = resident(b, cmd.Process.Pid)
		x := &contender{name: c.name, cmd: cmd, in: in}
		for range sessions {
			s := openHTTP(b, base+"/mcp/s")
			s.result("tools/list", `{}`)
			x.sessions = append(x.sessions, s)
		}
		all = append(all, x)
	}
	var ratios []float64
	for round := range rounds + 1 {
		order := slices.Clone(all)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, c := range order {
			c.slice(b, length)
		}
		if round == 0 { // they warm up
			for _, c := range all {
				c.rates, c.p50, c.calls, c.cpu = nil, nil, 0, 0
			}
			continue
		}
		ratios = append(ratios, all[2].rates[round-1]/all[0].rates[round-1])
	}
	mib := func(n int64) float64 { return float64(n) / (1 << 20) }
	reached := func(yes bool) string {
		if yes {
			return "reached"
		}
		return "MISSES"
	}
	load, _ := os.ReadFile("/proc/loadavg")
	fmt.Printf("%s, %d CPUs, load %s, %d sessions, results of 1 KiB, %d rounds\n", runtime.Version(), runtime.NumCPU(), strings.Fields(string(load) + " ?")[0], sessions, rounds)
	for _, c := range all {
		slices.Sort(c.rates)
		slices.Sort(c.p50)
		fmt.Printf("%-10s  %5.1f MiB before any call, %6.0f calls/s, p50 %v, %.0f µs of CPU a call\n", c.name, mib(memory[c.name]), c.rates[rounds/2], c.p50[rounds/2], float64(c.cpu.Microseconds())/float64(c.calls))
	}
	slices.Sort(ratios)
	adds, ratio := memory["open page"]-memory["no console"], ratios[len(ratios)/2]
	fmt.Printf("memory that a console with one open page adds: %.1f MiB, without a page %.1f; goal 5.0: %s\n", mib(adds), mib(memory["console"]-memory["no console"]), reached(adds <= 5<<20))
	fmt.Printf("calls/s with an open page, by those without a console, median of %d rounds: %.3f (%.3f to %.3f); goal 0.970: %s\n", rounds, ratio, ratios[0], ratios[len(ratios)-1], reached(ratio >= 0.97))
	each := func(c *contender) float64 { return float64(c.cpu) / float64(c.calls) }
	cpu := each(all[2]) / each(all[0])
	fmt.Printf("processor time of a call with an open page, by that without a console: %.3f; goal 1.030: %s\n", cpu, reached(cpu <= 1.03))
}

// plainServer is a server with a tool whose result is the text, as JSON.
func plainServer(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		asked, _ := io.ReadAll(r.Body)
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if json.Unmarshal(asked, &m) != nil || m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		result := `{"content":[{"type":"text","text":` + text + `}]}`
		switch m.Method {
		case "initialize":
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"plain","version":"1"}}`
		case "tools/list":
			result = `{"tools":[{"name":"read","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}`
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}
}
