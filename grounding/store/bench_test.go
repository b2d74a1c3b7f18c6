// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/grounding/store"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/href"
)

const (
	benchValidators = 5    // each attests every claim
	benchChunk      = 1000 // claims that one validator attests in a row
	benchClients    = 8
	benchEach       = 8 * time.Second // of searching, and of answering
)

// BenchmarkStore makes signed attestations on PELLUCID_BENCH_CLAIMS claims
// (200,000 are a million attestations; the default is 20,000), has a process import
// them with everything that is checked on the way, and a fresh one answer queries
// of 8 clients, and prints a table of both engines. CPU and memory are those of
// these processes; Postgres adds its own.
func BenchmarkStore(b *testing.B) {
	claims := 20_000
	if n, err := strconv.Atoi(os.Getenv("PELLUCID_BENCH_CLAIMS")); err == nil {
		claims = n
	}
	feed := filepath.Join(b.TempDir(), "feed.jsonl")
	began := time.Now()
	if err := writeFeed(feed, claims); err != nil {
		b.Fatal(err)
	}
	fmt.Printf("signed in %.0fs\n", time.Since(began).Seconds())
	rows := []string{"engine\tattestations\timport/s\tper CPU-s\tRSS\tsearch p50\tp99\tground p50\tp99\tCPU\tRSS\ton disk"}
	for _, engine := range []string{"sqlite", "postgres"} {
		b.Run(engine, func(b *testing.B) {
			where := filepath.Join(b.TempDir(), "bench.db")
			if engine == "postgres" {
				where = server.Database(b)
			}
			in := child(b, "import", where, feed)
			out := child(b, "serve", where, "")
			n := claims * benchValidators
			rate := float64(n) / in.Took.Seconds()
			b.ReportMetric(rate, "attestations/s")
			b.ReportMetric(milliseconds(out.Ground[1]), "p99-ms")
			rows = append(rows, fmt.Sprintf("%s\t%d\t%.0f\t%.0f\t%s\t%.1f ms\t%.1f ms\t%.1f ms\t%.1f ms\t%.2f ms\t%s\t%s", engine, n, rate,
				float64(n)/in.cpu.Seconds(), megabytes(in.Memory), milliseconds(out.Search[0]), milliseconds(out.Search[1]),
				milliseconds(out.Ground[0]), milliseconds(out.Ground[1]),
				milliseconds(out.cpu)/float64(out.Queries), megabytes(out.Memory), megabytes(onDisk(b, where))))
		})
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(rows, "\n"))
	w.Flush()
}

func milliseconds(d time.Duration) float64 { return float64(d) / 1e6 }
func megabytes(n int64) string             { return fmt.Sprintf("%d MB", n>>20) }

// onDisk is the size of the store.
func onDisk(b *testing.B, where string) (size int64) {
	if strings.HasPrefix(where, "postgres") {
		err := raw(b, where).QueryRow(`SELECT pg_database_size(current_database())`).Scan(&size)
		if err != nil {
			b.Fatal(err)
		}
		return size
	}
	err := filepath.WalkDir(filepath.Dir(where), func(_ string, d fs.DirEntry, err error) error {
		if info, ierr := d.Info(); err == nil && ierr == nil && !d.IsDir() {
			size += info.Size()
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return size
}

// Figures are what a process of the benchmark reports.
type figures struct {
	Took           time.Duration
	Search, Ground [2]time.Duration // p50, p99
	Queries        int
	Memory         int64 // peak resident set, bytes; 0 where the system does not tell

	cpu time.Duration
}

const benchEnv = "PELLUCID_STORE_BENCH"

// child has a process of its own import or serve, so that its memory is its own.
func child(b *testing.B, what, where, feed string) (f figures) {
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), benchEnv+"="+what, benchEnv+"_WHERE="+where, benchEnv+"_FEED="+feed)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &f)
	}
	if err != nil {
		b.Fatalf("%s: %v", what, err)
	}
	f.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return f
}

// benchmarking is that process.
func benchmarking(what string) error {
	s, err := openStore(os.Getenv(benchEnv+"_WHERE"), storage.Options{Wait: time.Minute})
	if err != nil {
		return err
	}
	defer s.Close()
	a, err := ground.New(ground.Options{Store: s, Now: func() time.Time { return day.Add(time.Hour) }})
	if err != nil {
		return err
	}
	var f figures
	if what == "import" {
		began := time.Now()
		err = importFeed(a, os.Getenv(benchEnv+"_FEED"))
		f.Took = time.Since(began)
	} else {
		err = serve(s, a, &f)
	}
	if err != nil {
		return err
	}
	status, _ := os.ReadFile("/proc/self/status")
	if _, rest, ok := strings.Cut(string(status), "VmHWM:"); ok {
		kB, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
		f.Memory = kB << 10
	}
	return json.NewEncoder(os.Stdout).Encode(f)
}

// importFeed has two importers take turns, so that one checks while the other's
// records are being stored.
func importFeed(a *ground.Adapter, feed string) error {
	file, err := os.Open(feed)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	var mu sync.Mutex
	next := func() (bodies [][]byte) {
		mu.Lock()
		defer mu.Unlock()
		for len(bodies) < ground.MaxBatch && lines.Scan() {
			bodies = append(bodies, slices.Clone(lines.Bytes()))
		}
		return bodies
	}
	errs := make(chan error, 2)
	for range cap(errs) {
		go func() {
			for bodies := next(); len(bodies) > 0; bodies = next() {
				receipts, err := a.Ingest(ctx, "", bodies)
				i := slices.IndexFunc(receipts, func(r ground.Receipt) bool { return !r.Accepted })
				if err == nil && i >= 0 {
					err = fmt.Errorf("not accepted: %+v", receipts[i])
				}
				if err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	return errors.Join(<-errs, <-errs, lines.Err())
}

// serve times searching with fetching the attestations of what is found, and whole
// answers.
func serve(s *store.Store, a *ground.Adapter, f *figures) error {
	search := func(text, topic string) error {
		hits, err := s.Search(ctx, ground.Query{Limit: 5, Text: text, Topic: topic})
		if err != nil {
			return err
		}
		var hashes []attest.Hash
		for _, c := range hits.Claims {
			hashes = append(hashes, c.Hash)
		}
		_, err = s.Attestations(ctx, hashes, 20)
		return err
	}
	answer := func(text, topic string) error {
		if topic != "" {
			text += " topic:" + topic
		}
		_, err := a.Ground(ctx, ground.Request{Query: text})
		return err
	}
	for _, part := range []struct {
		ask func(text, topic string) error
		p   *[2]time.Duration
	}{{search, &f.Search}, {answer, &f.Ground}} {
		took, err := clients(part.ask)
		if err != nil {
			return err
		}
		f.Queries += len(took)
		slices.Sort(took)
		*part.p = [2]time.Duration{took[len(took)/2], took[len(took)*99/100]}
	}
	return nil
}

// clients has 8 clients ask one thing after the other: the commonest words, words
// as common as they are in claims, and what is as long as a claim.
func clients(ask func(text, topic string) error) ([]time.Duration, error) {
	var mu sync.Mutex
	var all []time.Duration
	var failed error
	var wg sync.WaitGroup
	end := time.Now().Add(benchEach)
	for c := range benchClients {
		wg.Go(func() {
			v := newVocabulary(uint64(100 + c))
			var took []time.Duration
			var err error
			for i := 0; err == nil && time.Now().Before(end); i++ {
				text := []string{"w0", "w0 w1", "w0 w1 w2 w3", v.text(1), v.text(3), v.text(6), v.text(16)}[i%7]
				topic := []string{"", "science"}[i%2]
				began := time.Now()
				err = ask(text, topic)
				took = append(took, time.Since(began))
				runtime.Gosched() // as a client does that waits for its connection
			}
			mu.Lock()
			defer mu.Unlock()
			all, failed = append(all, took...), errors.Join(failed, err)
		})
	}
	wg.Wait()
	return all, failed
}

// A vocabulary is drawn from by Zipf's law, as words of a language are.
type vocabulary struct {
	zipf *rand.Zipf
	rnd  *rand.Rand
}

func newVocabulary(seed uint64) vocabulary {
	r := rand.New(rand.NewPCG(seed, 1))
	return vocabulary{rand.NewZipf(r, 1.07, 4, 60_000), r}
}

func (v vocabulary) text(n int) string {
	out := make([]string, n)
	for i := range out {
		out[i] = "w" + strconv.FormatUint(v.zipf.Uint64(), 36)
	}
	return strings.Join(out, " ")
}

// writeFeed writes signed attestations on so many claims, one a line: as several
// feeds would be taken over in turns, one validator's on a thousand claims after
// another's.
func writeFeed(name string, claims int) error {
	var keys [benchValidators]attest.Key
	random := rand.NewChaCha8([32]byte{})
	for i := range keys {
		var err error
		if keys[i], err = attest.GenerateKey(random); err != nil {
			return err
		}
	}
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	defer file.Close()
	var mu sync.Mutex
	var failed error
	var wg sync.WaitGroup
	var next atomic.Int64
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for from := int(next.Add(benchChunk)) - benchChunk; from < claims; from = int(next.Add(benchChunk)) - benchChunk {
				lines, err := signedChunk(keys[:], from, min(claims, from+benchChunk))
				mu.Lock()
				if err == nil {
					_, err = file.Write(lines)
				}
				failed = errors.Join(failed, err)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return errors.Join(failed, file.Sync())
}

func signedChunk(keys []attest.Key, from, to int) ([]byte, error) {
	v := newVocabulary(uint64(1_000_000 + from))
	texts := make([]string, to-from)
	for i := range texts {
		texts[i] = v.text(8 + v.rnd.IntN(16))
	}
	var out []byte
	for who, key := range keys {
		for i, text := range texts {
			source, err := href.Parse(fmt.Sprintf("https://source.example/%d/%d", who, from+i))
			if err != nil {
				return nil, err
			}
			st := attest.Statement{
				ID: fmt.Sprintf("urn:example:%d:%d", who, from+i), Version: attest.V03,
				Claim:     attest.Claim{Text: text, Language: "en", Topic: "science:climate", Type: "FACT"},
				Validator: key.DID(), Verdict: []attest.Verdict{attest.Supported, attest.Supported, attest.False}[v.rnd.IntN(3)],
				Domain: "scientific-default", Rationale: v.text(40), Issued: day,
				Evidence: []attest.Evidence{{Quote: v.text(25), URI: source}},
			}
			signed, err := attest.Sign(st.AppendJSON(nil), key, attest.SignOptions{Created: day})
			if err != nil {
				return nil, err
			}
			out = append(append(out, signed...), '\n')
		}
	}
	return out, nil
}
