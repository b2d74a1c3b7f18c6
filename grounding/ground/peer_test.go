// SPDX-License-Identifier: Apache-2.0

package ground_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/grounding/consensus"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/platform/logtest"
	"github.com/pellucid-mcp/pellucid/platform/waittest"
	"github.com/pellucid-mcp/pellucid/storage"
)

// TestFollow: what is here and what comes later arrives there, in order, and a
// retraction withholds it wherever its issuer is believed.
func TestFollow(t *testing.T) {
	issuer := []string{validator(t, "issuer").DID()}
	sa, sb, sc := openStore(t), openStore(t), openStore(t)
	a := newAdapter(t, ground.Options{Store: sa, Now: testClock, Issuers: issuer})
	b := newAdapter(t, ground.Options{Store: sb, Now: testClock, Issuers: issuer})
	var told []ground.Refused
	c := newAdapter(t, ground.Options{Store: sc, Now: testClock, Refused: func(r ground.Refused) { told = append(told, r) }})
	receipts := ingest(t, a, sayings(520)...)
	url := serve(t, a).URL
	for _, x := range []*ground.Adapter{b, c} {
		stop := follow(t, x, ground.Peer{URL: url, Every: soon}, nil)
		defer stop()
	}
	arrived := func(s ground.Store, n int) func() bool {
		return func() bool { h := hashes(t, s); return len(h) == n && cmp.Equal(h, hashes(t, sa)[:n]) }
	}
	waittest.Until(t, "all is there", arrived(sb, 520))
	waittest.Until(t, "all is there", arrived(sc, 520))
	more := ingest(t, a, saying{by: "b", claim: "It depends.", dependsOn: []string{receipts[7].Hash}})[0].Hash
	if r, change := send(t, a, event(t, ground.Retract, receipts[7].Hash, "issuer", testTime)); !r.Accepted || change.Pending != 1 {
		t.Fatalf("%+v, %+v", r, change)
	}
	waittest.Until(t, "the retraction is there", arrived(sb, 522))
	for _, h := range []string{receipts[7].Hash, more} {
		if x, y := statusOf(t, sa, h), statusOf(t, sb, h); x != y || x == consensus.Live {
			t.Errorf("%v here, %v there", x, y)
		}
	}
	waittest.Until(t, "it is refused where nobody believes it", func() bool { return only(t, c).Refused == 1 })
	if st := statusOf(t, sc, more); st != consensus.Live || len(told) != 1 || told[0].Receipt.Code != ground.CodeNotBelieved || told[0].Submitter != url {
		t.Errorf("%v, %+v", st, told)
	}
	waittest.Until(t, "the end was reached", func() bool { return only(t, b).Contact.Equal(testTime) })
	if s := only(t, b); s.Failing || s.Taken != 522 || s.Refused != 0 {
		t.Errorf("%+v", s)
	}
}

// TestFollowResumes: a follower that is stopped anywhere goes on from there.
func TestFollowResumes(t *testing.T) {
	sa := openStore(t)
	a := newAdapter(t, ground.Options{Store: sa, Now: testClock})
	ingest(t, a, sayings(1100)...)
	var asked []string
	var mu sync.Mutex
	handler := a.FeedHandler()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.URL.Query().Get("after"))
		mu.Unlock()
		handler.ServeHTTP(w, r)
	}))
	defer s.Close()
	where := filepath.Join(t.TempDir(), "b.db")
	runs := 0
	for have := 0; have < 1100; runs++ {
		st, err := storage.Open(t.Context(), where, storage.Options{})
		if err != nil {
			t.Fatal(err)
		}
		b := newAdapter(t, ground.Options{Store: st, Now: testClock})
		stop := follow(t, b, ground.Peer{URL: s.URL, Every: soon}, nil)
		waittest.Until(t, "some more", func() bool { return len(hashes(t, st)) > have })
		stop()
		got := hashes(t, st)
		if have = len(got); !cmp.Equal(got, hashes(t, sa)[:have]) {
			t.Fatal("what has arrived is not a beginning of the feed")
		}
		if len(b.Peers()) != 0 {
			t.Error("a peer that is not followed any more has a state")
		}
		st.Close()
	}
	if runs < 2 {
		t.Skip("everything arrived before it could be stopped")
	}
	mu.Lock()
	defer mu.Unlock()
	for i, after := range asked[1:] {
		if after == "0" && asked[i] != "0" {
			t.Errorf("began anew: %v", asked)
		}
	}
}

// TestFederation: in a ring everything reaches everybody, and comes to rest.
func TestFederation(t *testing.T) {
	const n = 4
	stores, adapters := make([]*storage.Store, n), make([]*ground.Adapter, n)
	urls, asked := make([]string, n), make([]atomic.Int64, n)
	issuer := []string{validator(t, "issuer").DID()}
	for i := range n {
		stores[i] = openStore(t)
		adapters[i] = newAdapter(t, ground.Options{Store: stores[i], Now: testClock, Issuers: issuer})
		feed := adapters[i].FeedHandler()
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			feed.ServeHTTP(w, r)
			asked[i].Add(1)
		}))
		defer srv.Close()
		urls[i] = srv.URL
	}
	all := sayings(5 * n)
	for i := range n {
		rs := ingest(t, adapters[i], all[5*i:5*i+5]...)
		send(t, adapters[i], event(t, ground.Retract, rs[0].Hash, "issuer", testTime))
		for _, j := range []int{i + 1, i + 2} {
			defer follow(t, adapters[i], ground.Peer{URL: urls[j%n], Every: soon}, nil)()
		}
	}
	total := func(s ground.Store) int { return len(hashes(t, s)) }
	for i := range n {
		waittest.Until(t, "everybody has everything", func() bool { return total(stores[i]) == 6*n })
	}
	for i := range n { // by each of its two followers more than once
		before := asked[i].Load()
		waittest.Until(t, "the feed is asked for again", func() bool { return asked[i].Load() > before+20 })
	}
	want := map[string]consensus.Status{}
	for _, h := range hashes(t, stores[0]) {
		if hash, _ := attest.ParseHash(h); true {
			if st, err := stores[0].ByHash(t.Context(), hash); err == nil {
				want[h] = st.Status
			}
		}
	}
	if len(want) != 5*n {
		t.Fatalf("%d attestations", len(want))
	}
	for i := range n {
		if got := total(stores[i]); got != 6*n {
			t.Errorf("store %d has grown to %d", i, got)
		}
		for h, status := range want {
			if got := statusOf(t, stores[i], h); got != status {
				t.Errorf("%v in store %d, %v in the first", got, i, status)
			}
		}
		for _, s := range adapters[i].Peers() {
			if s.Failing || s.Refused != 0 {
				t.Errorf("%+v", s)
			}
		}
	}
}

// TestHostileFollow: a peer that lies does not stop the follower, and has no more
// effect than what others have signed.
func TestHostileFollow(t *testing.T) {
	good := saying{by: "a", claim: "Snow is cold."}.sign(t)
	entry := func(cursor int, kind, hash, original string) string {
		return fmt.Sprintf(`{"cursor":"%d","kind":"%s","hash":"sha256:%s","original":%q}`, cursor, kind, hash, original)
	}
	zero := strings.Repeat("0", 64)
	retraction := event(t, ground.Retract, source, "mallory", testTime)
	peer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Query().Get("after") {
		case "0":
			io.WriteString(w, feedOf(
				entry(1, "retract", zero, string(retraction)),                                                 // nobody believes him
				entry(2, "retract", zero, string(good)),                                                       // no event
				entry(3, "attestation", zero, string(retraction)),                                             // no attestation
				entry(4, "attestation", zero, strings.Replace(string(good), "SUPPORTED", "FALSE", 1)),         // forged
				entry(5, "attestation", zero, ""),                                                             // nothing
				entry(6, "attestation", zero, string(good)),                                                   // of another hash than he says
				entry(4611686018427387904, "attestation", zero, string(good)), "", "", "not a feed any more")) // far ahead
		case "4611686018427387904":
			io.WriteString(w, `{"cursor":"4611686018427387904","kind":"end"}`+"\n")
		default:
			t.Errorf("asked for %s", r.URL.RawQuery)
		}
	}))
	defer peer.Close()
	s := openStore(t)
	a := newAdapter(t, ground.Options{Store: s, Now: testClock})
	var log logtest.Buffer
	stop := follow(t, a, ground.Peer{URL: peer.URL, Every: soon}, slog.New(slog.NewTextHandler(&log, nil)))
	defer stop()
	waittest.Until(t, "the end is reached", func() bool { return !only(t, a).Contact.IsZero() })
	if got := only(t, a); got.Taken != 1 || got.Refused != 5 || got.Skipped != 0 || got.Failing {
		t.Errorf("%+v", got)
	}
	if all := hashes(t, s); len(all) != 1 || all[0] == "sha256:"+zero {
		t.Errorf("stored: %v", all)
	}
	if l := log.String(); !strings.Contains(l, "do not have the hashes") || !strings.Contains(l, "ended early") || strings.Contains(l, "Snow") {
		t.Errorf("log: %s", l)
	}
}

// TestBackOff: a peer that fails is asked ever more seldom, and not before it
// wants to be.
func TestBackOff(t *testing.T) {
	for _, c := range []struct {
		name        string
		retryAfter  string
		least, most time.Duration // between the requests, after some
	}{
		{"by itself", "", 4 * time.Minute, 5 * time.Minute},
		{"as the peer asks", "600", 10 * time.Minute, 10 * time.Minute},
		{"within reason", "99999999999999999999999", ground.PeerPatience, ground.PeerPatience},
		{"nonsense", "soon", 4 * time.Minute, 5 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var asked []time.Time
				client, stop := serveOnPipe(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					mu.Lock()
					defer mu.Unlock()
					asked = append(asked, time.Now())
					if len(asked) > 20 {
						io.WriteString(w, `{"cursor":"0","kind":"end"}`+"\n")
						return
					}
					if c.retryAfter != "" {
						w.Header().Set("Retry-After", c.retryAfter)
					}
					w.WriteHeader(http.StatusTooManyRequests)
				}))
				defer stop()
				a := newAdapter(t, ground.Options{})
				halt := follow(t, a, ground.Peer{URL: "http://localhost/", Client: client}, nil)
				defer halt()
				for n := range 23 {
					for have := 0; have <= n; time.Sleep(200 * time.Millisecond) {
						mu.Lock()
						have = len(asked)
						mu.Unlock()
					}
					if got := only(t, a).Failing; got != (n < 20) {
						t.Errorf("after request %d: failing %t", n, got)
					}
				}
				mu.Lock()
				defer mu.Unlock()
				for i := 12; i < 20; i++ {
					if d := asked[i].Sub(asked[i-1]); d < c.least || d > c.most {
						t.Errorf("request %d after %v", i, d)
					}
				}
				if d := asked[21].Sub(asked[20]); d != ground.PeerEvery {
					t.Errorf("once it has recovered, asked after %v", d)
				}
			})
		})
	}
}

// TestUnavailableKey: an entry that may be accepted later is tried again, and does
// not hold up the feed for ever.
func TestUnavailableKey(t *testing.T) {
	const method = "did:web:lab.example#key"
	body, err := ground.SignCascade(ground.Retract, source, "", testTime, validator(t, "issuer"), attest.SignOptions{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		fails   int
		taken   int64
		skipped int64
	}{
		{"at first", ground.EntryAttempts - 1, 2, 0},
		{"for ever", 1 << 30, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				here := &webKeys{method: method, key: publicKey(t, "issuer")}
				a := newAdapter(t, ground.Options{Now: testClock, Issuers: []string{"did:web:lab.example"}, Keys: here})
				if r, _ := send(t, a, body); !r.Accepted {
					t.Fatalf("%+v", r)
				}
				hash := hashOfEvent(t, body)
				ingest(t, a, sayings(1)...)
				client, stop := serveOnPipe(a.FeedHandler())
				defer stop()

				there := &flakyKeys{webKeys{method: method, key: here.key}, c.fails}
				st := openStore(t)
				b := newAdapter(t, ground.Options{Store: st, Now: testClock, Issuers: []string{"did:web:lab.example"}, Keys: there})
				var log logtest.Buffer
				halt := follow(t, b, ground.Peer{URL: "http://localhost/", Client: client}, slog.New(slog.NewTextHandler(&log, nil)))
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if got := only(t, b); got.Taken != c.taken || got.Skipped != c.skipped || got.Refused != c.skipped || got.Contact.IsZero() {
					t.Errorf("%+v", got)
				}
				if there.asked != min(c.fails+1, ground.EntryAttempts) {
					t.Errorf("asked for the key %d times", there.asked)
				}
				if named := strings.Contains(log.String(), hash); named != (c.skipped > 0) {
					t.Errorf("log: %s", log.String())
				}
				halt()
				if position, err := st.PeerCursor(t.Context(), "http://localhost/"); err != nil || position != "2" {
					t.Errorf("cursor %q, %v", position, err)
				}
			})
		})
	}
}

func hashOfEvent(t testing.TB, body []byte) string {
	t.Helper()
	h, err := ground.ParseEvent(body)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// flakyKeys fail at first.
type flakyKeys struct {
	webKeys
	fails int
}

func (k *flakyKeys) ResolveKey(ctx context.Context, method string) (ed25519.PublicKey, error) {
	if method == k.method && k.asked < k.fails {
		k.asked++
		return nil, errors.New("timeout")
	}
	return k.webKeys.ResolveKey(ctx, method)
}

// TestFullStore: for the sake of our own store no entry is skipped, and the cursor
// does not move.
func TestFullStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdapter(t, ground.Options{Now: testClock})
		ingest(t, a, sayings(3)...)
		client, stop := serveOnPipe(a.FeedHandler())
		defer stop()
		full := &fullStore{Store: openStore(t)}
		full.is.Store(true)
		b := newAdapter(t, ground.Options{Store: full, Now: testClock})
		halt := follow(t, b, ground.Peer{URL: "http://localhost/", Client: client}, nil)
		defer halt()
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := only(t, b); !got.Failing || got.Taken+got.Refused+got.Skipped != 0 {
			t.Errorf("%+v", got)
		}
		if position, err := full.PeerCursor(t.Context(), "http://localhost/"); err != nil || position != "" {
			t.Errorf("cursor %q, %v", position, err)
		}
		full.is.Store(false)
		time.Sleep(6 * time.Minute)
		synctest.Wait()
		if got := only(t, b); got.Failing || got.Taken != 3 {
			t.Errorf("%+v", got)
		}
	})
}

// A fullStore takes no attestation while it is full.
type fullStore struct {
	ground.Store
	is atomic.Bool
}

func (s *fullStore) Put(ctx context.Context, batch []ground.Record, evidence func([]ground.PutResult) ([][]byte, error)) ([]ground.PutResult, error) {
	if s.is.Load() {
		return nil, ground.ErrFull
	}
	return s.Store.Put(ctx, batch, evidence)
}

// TestRate: an operator may slow a follower down.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, stop := serveOnPipe(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			after, _ := strconv.Atoi(r.URL.Query().Get("after"))
			for n := range min(500, 1100-after) {
				io.WriteString(w, line(after+n+1)+"\n")
			}
			fmt.Fprintf(w, `{"cursor":"%d","kind":"end"}`+"\n", min(after+500, 1100))
		}))
		defer stop()
		b := newAdapter(t, ground.Options{Now: testClock})
		halt := follow(t, b, ground.Peer{URL: "http://localhost/", Client: client, Rate: 50}, nil)
		defer halt()
		for _, want := range []int64{500, 1000, 1100} {
			time.Sleep(5 * time.Second)
			synctest.Wait()
			if got := only(t, b).Refused; got != want {
				t.Errorf("%d taken over, want %d", got, want)
			}
			time.Sleep(5 * time.Second)
		}
	})
}
