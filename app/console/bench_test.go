// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"database/sql"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"golang.org/x/time/rate"

	"github.com/pellucid-mcp/pellucid/platform/pgtest"
	"github.com/pellucid-mcp/pellucid/platform/signin"
	"github.com/pellucid-mcp/pellucid/storage"
)

// Goals of a page.
const (
	goalServer = 50 * time.Millisecond // the answer of the server, p99
	goalXray   = 200 * time.Millisecond
	goalPaint  = 300 * time.Millisecond // first contentful paint
	goalKey    = 100 * time.Millisecond // an interaction
)

// An ask is a request that the benchmark sends again and again.
type ask struct {
	what   string
	path   string                                     // below Base
	form   url.Values                                 // of a POST
	next   func(i int) (path string, form url.Values) // in place of both, where each request differs; its time does not count
	status int                                        // 0: 200
	goal   time.Duration                              // 0: goalServer
	anon   bool                                       // without a session
	paint  bool                                       // the browser opens it too
}

// unmeasured are the routes whose time says nothing about the console.
var unmeasured = map[string]string{
	"GET records/{id}/case": "an export, and no page: it looks through the log and makes every proof",
	"GET journal":           "it reads a file of this machine, and no store",
	"GET journal/{id}":      "it reads a file of this machine, and no store",
	"GET login/openid":      "it waits for the provider",
	"GET login/return":      "it waits for the provider",
}

// TestEveryRouteIsMeasured: a new page cannot be left out of the figures.
func TestEveryRouteIsMeasured(t *testing.T) {
	t.Parallel()
	asks := (&filled{}).asks()
	for _, r := range routes() {
		if (len(asks[r.pattern]) > 0) == (unmeasured[r.pattern] != "") {
			t.Errorf("%s: the benchmark asks it %d times, and the reason not to is %q", r.pattern, len(asks[r.pattern]), unmeasured[r.pattern])
		}
	}
	for pattern := range asks {
		if !slices.ContainsFunc(routes(), func(r route) bool { return r.pattern == pattern }) {
			t.Errorf("%s: there is no such route", pattern)
		}
	}
}

// benchSetting reads a number from the environment.
func benchSetting(name string, usual int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 0 {
		return n
	}
	return usual
}

// load is how busy the machine is: the mean number of processes that run or wait, of a minute.
func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Fields(string(b))[0]
}

// processor is the processor time of this process, in hundredths of a second; 0 where it is not known.
func processor() time.Duration {
	b, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	sum := 0
	for _, n := range strings.Fields(rest)[11:13] { // of the program and of the system for it
		ticks, _ := strconv.Atoi(n)
		sum += ticks
	}
	return time.Duration(sum) * 10 * time.Millisecond
}

var benchPostgres pgtest.Server

// BenchmarkPages fills a store with PELLUCID_BENCH_RECORDS records (20,000) and 2,000 held items, or a hundredth of the records,
// and measures each route of the console: what the server takes, and what a browser takes to show the page.
// Its own loop does not count: run it with -benchtime 1x. PELLUCID_BENCH_ENGINES names the engines. PELLUCID_BENCH_KEEP is
// a folder in which a filled SQLite file stays for the next run, and PELLUCID_BENCH_POSTGRES the URL of a database that does.
// PELLUCID_BENCH_ONLY measures the routes whose pattern contains it.
func BenchmarkPages(b *testing.B) {
	n := benchSetting("PELLUCID_BENCH_RECORDS", 20_000)
	defer benchPostgres.Stop()
	for _, engine := range strings.Fields(cmp.Or(os.Getenv("PELLUCID_BENCH_ENGINES"), "sqlite postgres")) {
		b.Run(engine, func(b *testing.B) {
			where := filepath.Join(cmp.Or(os.Getenv("PELLUCID_BENCH_KEEP"), b.TempDir()), fmt.Sprint("console-", n, ".db"))
			if engine == "postgres" {
				if where = os.Getenv("PELLUCID_BENCH_POSTGRES"); where == "" {
					where = benchPostgres.Database(b)
				}
			}
			s, err := storage.Open(b.Context(), where, storage.Options{Wait: time.Minute, Cache: 8 << 20})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			began := time.Now()
			f := fill(b, s, n)
			if engine == "postgres" && f.turn == 0 { // as autovacuum does
				db, err := sql.Open("pgx", where)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := db.Exec("VACUUM ANALYZE"); err != nil {
					b.Fatal(err)
				}
				db.Close()
			}
			runtime.GC()
			table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintf(table, "%s: %d records, %d held items; filled in %s; load %s, %d CPUs\n", engine, n, f.held, time.Since(began).Round(time.Second), load(), runtime.NumCPU())
			defer table.Flush() // without a browser the rest is skipped
			misses := f.serve(b, table)
			table.Flush()
			if os.Getenv("PELLUCID_BENCH_ONLY") == "" {
				misses += f.browse(b, table)
			}
			fmt.Fprintf(table, "%s: %d figures miss their goal; load %s\n\n", engine, misses, load())
		})
	}
	sizes(b)
}

// verdict says whether a figure reaches its goal.
func verdict(took, goal time.Duration, misses *int) string {
	if took <= goal {
		return "yes"
	}
	*misses++
	return "MISSES"
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }

// serve times what the server takes for each ask, through the handler with its session.
func (f *filled) serve(b *testing.B, table *tabwriter.Writer) (misses int) {
	rounds := benchSetting("PELLUCID_BENCH_REQUESTS", 100)
	fmt.Fprintln(table, "route\twhat\trequests\tprocessor\tp50\tp99\tgoal\treached")
	asks := f.asks()
	for _, r := range f.routes {
		f.secret = "" // the route before may have ended the session
		if !strings.Contains(r.pattern, os.Getenv("PELLUCID_BENCH_ONLY")) {
			continue
		}
		if why := unmeasured[r.pattern]; why != "" {
			fmt.Fprintf(table, "%s\t%s\t\t\t\t\t\n", strings.TrimSpace(r.pattern), why)
		}
		for _, a := range asks[r.pattern] {
			var took []time.Duration
			begun, cost := time.Now(), time.Duration(0)
			for i := range rounds {
				if i >= 10 && time.Since(begun) > 10*time.Second {
					break
				}
				q := f.request(r, a, i)
				w := httptest.NewRecorder()
				at, before := time.Now(), processor()
				f.ServeHTTP(w, q)
				took, cost = append(took, time.Since(at)), cost+processor()-before
				if want := cmp.Or(a.status, http.StatusOK); w.Code != want {
					b.Errorf("%s, %s: status %d, want %d: %s", r.pattern, a.what, w.Code, want, says(w.Body.String()))
					break
				}
			}
			slices.Sort(took)
			p50, p99, goal := took[len(took)/2], took[(len(took)-1)*99/100], cmp.Or(a.goal, goalServer)
			fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\n", strings.TrimSpace(r.pattern), a.what, len(took), ms(cost/time.Duration(len(took))), ms(p50), ms(p99), ms(goal), verdict(p99, goal, &misses))
		}
	}
	return misses
}

func (f *filled) request(r route, a ask, i int) *http.Request {
	path, form := a.path, a.form
	if a.next != nil {
		path, form = a.next(i)
	}
	method, _, _ := strings.Cut(r.pattern, " ")
	body, kind := form.Encode(), "application/x-www-form-urlencoded"
	if r.pattern == "POST xray" {
		body, kind = multipartForm(f.b, form)
	}
	q := httptest.NewRequest(method, Base+path, strings.NewReader(body))
	q.RemoteAddr = fmt.Sprintf("10.%d.%d.1:1", i/256, i%256) // sign-ins are limited by address
	if method == http.MethodPost {
		q.Header.Set("Content-Type", kind)
		q.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	if !a.anon {
		q.AddCookie(&http.Cookie{Name: cookiePlain, Value: f.session()})
	}
	return q
}

func multipartForm(b testing.TB, form url.Values) (body, kind string) {
	var out strings.Builder
	w := multipart.NewWriter(&out)
	for name := range form {
		if err := w.WriteField(name, form.Get(name)); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	return out.String(), w.FormDataContentType()
}

// page is an answer to a GET.
func (f *filled) page(path string) string {
	w := httptest.NewRecorder()
	f.ServeHTTP(w, f.request(route{pattern: "GET "}, ask{path: path}, 0))
	return w.Body.String()
}

// session begins a session by a link, once; a request that ends it has a new one.
func (f *filled) session() string {
	if f.secret == "" {
		secret, _, err := f.signIns.Begin(f.b.Context(), signin.Session{Person: "ana", How: signin.ByLink})
		if err != nil {
			f.b.Fatal(err)
		}
		f.secret = secret
	}
	return f.secret
}

// says cuts what an answer says to its main part.
func says(page string) string {
	_, main, ok := strings.Cut(page, "<main")
	if !ok {
		main = page
	}
	return main[:min(len(main), 400)]
}

// noLimit lets the benchmark sign in as often as it measures.
func noLimit() *rate.Limiter { return rate.NewLimiter(rate.Inf, 1) }

// sizes prints how many bytes the files of the browser are when they are compressed.
func sizes(b *testing.B) {
	scripts := 0
	list, err := os.ReadDir("assets")
	if err != nil {
		b.Fatal(err)
	}
	for _, e := range list {
		data, err := os.ReadFile(filepath.Join("assets", e.Name()))
		if err != nil {
			b.Fatal(err)
		}
		n := gzipped(b, data)
		if strings.HasSuffix(e.Name(), ".js") {
			scripts += n
		}
		fmt.Printf("assets/%s: %d bytes, %d compressed by gzip\n", e.Name(), len(data), n)
	}
	reached := "reached"
	if scripts > 40<<10 {
		reached = "MISSES"
	}
	fmt.Printf("all scripts: %d bytes compressed, goal %d: %s\n", scripts, 40<<10, reached)
}
