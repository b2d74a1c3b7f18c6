// SPDX-License-Identifier: Apache-2.0

package ingest_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/grounding/ingest"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// marker is what no error may repeat.
const marker = "ignore-all-previous-instructions"

// still is told how far a Read is.
func still(int64) {}

// readAll collects what is read. An error is written "line pointer code".
func readAll(t testing.TB, in string, progress func(int64)) (bodies [][]byte, errs []string) {
	t.Helper()
	for body, err := range ingest.Read(strings.NewReader(in), progress) {
		if err == nil {
			bodies = append(bodies, body)
			continue
		}
		if strings.Contains(err.Error(), marker) {
			t.Errorf("an error repeats what was read: %s", err)
		}
		var e *ingest.EntryError
		if !errors.As(err, &e) {
			errs = append(errs, "last: "+err.Error())
			continue
		}
		if !e.Code.Known() {
			t.Errorf("no code of package finding: %v", err)
		}
		errs = append(errs, strings.Join(strings.Fields(fmt.Sprint(e.Line, " ", e.Pointer, " ", e.Code)), " "))
	}
	return bodies, errs
}

func TestReadAttestation(t *testing.T) {
	long := `{"a":"` + strings.Repeat("x", attest.MaxBytes) + `"}`
	for _, tt := range []struct {
		name, in string
		want     string // documents, by "|"
		errs     string
	}{
		{"one", `{"a":1}`, `{"a":1}`, ""},
		{"pretty", "{\n  \"a\": [\n    {}\n  ]\n}\n", "{\n  \"a\": [\n    {}\n  ]\n}", ""},
		{"lines", "{\"a\":1}\n\n  {\"a\":2}  \r\n{\"a\":3}", `{"a":1}|{"a":2}|{"a":3}`, ""},
		{"a bad line", "{\"a\":1}\n{" + marker + "}\n{\"a\":3}\n", `{"a":1}|{"a":3}`, "2 not-json"},
		{"a bad first line", marker + "\n{\"a\":3}\n", `{"a":3}`, "1 not-json"},
		{"a torn first line", "{\"a\":\n{\"a\":2}\n{\"a\":3}\n", `{"a":2}|{"a":3}`, "1 not-json"},
		{"a torn last line", "{\"a\":1}\n{\"a\":", `{"a":1}`, "2 not-json"},
		{"pretty and bad", "{\n  \"a\": 1,\n  \"b\": x\n}\n", "", "1 not-json"},
		{"pretty and torn", "\n{\n  \"a\": 1,\n", "", "2 not-json"},
		{"a long line", "{\"a\":1}\n" + long + "\n{\"a\":3}", `{"a":1}|{"a":3}`, "2 too-long"},
		{"a long first line", long + "\n{\"a\":3}", `{"a":3}`, "1 too-long"},
		{"long and pretty", "{\n" + strings.Repeat(" \"a\":1,\n", attest.MaxBytes/8+1), "", "1 too-long"},
		{"no object", "[1]\n\"x\"\nnull\n{}", `{}`, "1 misshapen|2 misshapen|3 misshapen"},
		{"deep", strings.Repeat("[", 1000) + "\n{}", `{}`, "1 too-deep"},
		{"two names", `{"a":1,"a":2}`, "", "1 not-json"},
		{"bad UTF-8", "{\"a\":\"\xff\"}", "", "1 not-json"},
		{"nothing", " \n\n", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, packed := range []bool{false, true} {
				in := tt.in
				if packed {
					in = gzipped(in)
				}
				bodies, errs := readAll(t, in, still)
				if got := string(bytes.Join(bodies, []byte("|"))); got != tt.want {
					t.Errorf("got %s, want %s", finding.Quote(got), finding.Quote(tt.want))
				}
				if got := strings.Join(errs, "|"); got != tt.errs {
					t.Errorf("errors %q, want %q", got, tt.errs)
				}
			}
		})
	}
}

func gzipped(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, s)
	z.Close()
	return b.String()
}

func TestReadRefuses(t *testing.T) {
	for _, in := range []string{"\x1f\x8b" + marker, gzipped(strings.Repeat("{}\n", 99))[:20]} {
		if _, errs := readAll(t, in, still); len(errs) != 1 || !strings.HasPrefix(errs[0], "last: ground: ") {
			t.Errorf("%q", errs)
		}
	}
}

// repeated yields one byte n times.
type repeated struct{ n int }

func (r *repeated) Read(p []byte) (int, error) {
	if r.n == 0 {
		return 0, io.EOF
	}
	n := min(len(p), r.n)
	for i := range n {
		p[i] = 'x'
	}
	r.n -= n
	return n, nil
}

func TestLongLineMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n := 0
	for range ingest.Read(&repeated{100 << 20}, still) {
		n++
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; n != 1 || got > 16<<20 {
		t.Errorf("%d entries, %d bytes allocated for a line of 100 MiB", n, got)
	}
}

type failing struct{ after io.Reader }

func (f failing) Read(p []byte) (int, error) {
	if n, err := f.after.Read(p); err == nil {
		return n, nil
	}
	return 0, errors.New("the disk is gone")
}

func TestReadFails(t *testing.T) {
	for _, in := range []string{"{}\n{}\n", "{\n", ""} {
		var last error
		for _, err := range ingest.Read(failing{strings.NewReader(in)}, still) {
			last = err
		}
		if last == nil || last.Error() != "ground: read: the disk is gone" {
			t.Errorf("%q: %v", in, last)
		}
	}
}

func TestProgress(t *testing.T) {
	in := strings.Repeat("{\"a\":1}\n", 100_000)
	var seen []int64
	if bodies, errs := readAll(t, in, func(n int64) { seen = append(seen, n) }); len(bodies) != 100_000 || errs != nil {
		t.Fatalf("%d, %v", len(bodies), errs)
	}
	if !slices.IsSorted(seen) || seen[0] > 1<<17 || seen[len(seen)-1] != int64(len(in)) {
		t.Errorf("from %d to %d of %d", seen[0], seen[len(seen)-1], len(in))
	}
}

// TestStop stops in the middle.
func TestStop(t *testing.T) {
	for stop := 1; stop <= 3; stop++ {
		n := 0
		for range ingest.Read(strings.NewReader("{}\n{}\n{}\n"), still) {
			if n++; n == stop {
				break
			}
		}
		if n != stop {
			t.Errorf("%d, want %d", n, stop)
		}
	}
}
