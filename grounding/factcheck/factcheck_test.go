// SPDX-License-Identifier: Apache-2.0

package factcheck_test

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
	"time"

	"go.uber.org/goleak"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/grounding/factcheck"
	"github.com/pellucid-mcp/pellucid/platform/datatest"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	seeded = factcheck.Options{Seed: [32]byte{1}}
	now    = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
)

// marker is what no error may repeat.
const marker = "ignore-all-previous-instructions"

// verified parses and verifies what a signing format yields.
func verified(t testing.TB, body []byte) *attest.Attestation {
	t.Helper()
	a, err := attest.Parse(body, attest.Options{})
	if err == nil {
		err = a.Verify(t.Context(), now, attest.DIDKey{})
	}
	if err != nil {
		t.Fatalf("%v in %s", err, finding.Quote(string(body)))
	}
	return a
}

// readAll collects what is read. An error is written "line pointer code".
func readAll(t testing.TB, f factcheck.Format, in string, o factcheck.Options) (bodies [][]byte, errs []string) {
	t.Helper()
	for body, err := range factcheck.Read(f, strings.NewReader(in), o) {
		if err == nil {
			bodies = append(bodies, body)
			continue
		}
		if strings.Contains(err.Error(), marker) {
			t.Errorf("an error repeats what was read: %s", err)
		}
		var e *factcheck.EntryError
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

func attestations(t testing.TB, f factcheck.Format, in string) ([]*attest.Attestation, []string) {
	t.Helper()
	bodies, errs := readAll(t, f, in, seeded)
	var out []*attest.Attestation
	for _, b := range bodies {
		out = append(out, verified(t, b))
	}
	return out, errs
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
				bodies, errs := readAll(t, factcheck.Attestation, in, factcheck.Options{})
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
	for _, tt := range []struct {
		f  factcheck.Format
		in string
		o  factcheck.Options
	}{
		{"csv", "x", seeded},
		{"", "x", seeded},
		{factcheck.ClimateFever, "{}", factcheck.Options{}},
		{factcheck.ClaimReview, "{}", factcheck.Options{}},
		{factcheck.Attestation, "\x1f\x8b" + marker, seeded},
		{factcheck.Attestation, gzipped(strings.Repeat("{}\n", 99))[:20], seeded},
	} {
		_, errs := readAll(t, tt.f, tt.in, tt.o)
		if len(errs) != 1 || !strings.HasPrefix(errs[0], "last: factcheck: ") {
			t.Errorf("%s: %q", tt.f, errs)
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
	for _, f := range []factcheck.Format{factcheck.Attestation, factcheck.ClimateFever} {
		runtime.ReadMemStats(&before)
		n := 0
		for range factcheck.Read(f, &repeated{100 << 20}, seeded) {
			n++
		}
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; n != 1 || got > 16<<20 {
			t.Errorf("%s: %d entries, %d bytes allocated for a line of 100 MiB", f, n, got)
		}
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
		for _, err := range factcheck.Read(factcheck.Attestation, failing{strings.NewReader(in)}, seeded) {
			last = err
		}
		if last == nil || last.Error() != "factcheck: read: the disk is gone" {
			t.Errorf("%q: %v", in, last)
		}
	}
}

func TestProgress(t *testing.T) {
	in := strings.Repeat("{\"a\":1}\n", 100_000)
	var seen []int64
	o := factcheck.Options{Progress: func(n int64) { seen = append(seen, n) }}
	if bodies, errs := readAll(t, factcheck.Attestation, in, o); len(bodies) != 100_000 || errs != nil {
		t.Fatalf("%d, %v", len(bodies), errs)
	}
	if !slices.IsSorted(seen) || seen[0] > 1<<17 || seen[len(seen)-1] != int64(len(in)) {
		t.Errorf("from %d to %d of %d", seen[0], seen[len(seen)-1], len(in))
	}
}

// TestStop stops in the middle; TestMain sees that nothing goes on.
func TestStop(t *testing.T) {
	for f, in := range map[factcheck.Format]string{
		factcheck.Attestation:  "{}\n{}\n{}\n",
		factcheck.ClimateFever: climateLine("1", 3) + "\n" + marker + "\n" + climateLine("2", 3),
		factcheck.ClaimReview:  "[" + review(`"True"`, "") + "," + review(`"False"`, "") + ",{},{}]",
	} {
		total := 0
		for range factcheck.Read(f, strings.NewReader(in), seeded) {
			total++
		}
		for stop := 1; stop <= total; stop++ {
			n := 0
			for range factcheck.Read(f, strings.NewReader(in), seeded) {
				if n++; n == stop {
					break
				}
			}
			if n != stop {
				t.Errorf("%s: %d, want %d of %d", f, n, stop, total)
			}
		}
	}
}

func dataFile(t testing.TB, name string) string {
	t.Helper()
	path, err := datatest.Find("../..", name)
	if err != nil {
		t.Skip(err)
	}
	return path
}
