// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"cmp"
	"container/list"
	"errors"
	"math"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limits bound what one principal may ask of a handler. The zero value stands
// for the numbers named.
type Limits struct {
	Rate       float64 // requests a second, in the long run; 20
	Burst      int     // requests at once, after a pause; 40
	Concurrent int     // requests under way, a streamed answer up to its end; 32

	// Refuse answers a request that is too much. Its header Retry-After is set. nil: the status 429 alone.
	Refuse http.Handler

	// principals is how many are told apart at one time, and as many again of
	// those who are not authenticated; 10,000. Those beyond share one allowance.
	principals int

	// Proxies are believed about where a request comes from. nil: none is, and behind a proxy all clients have one address.
	Proxies Proxies
}

// NewLimit returns the middleware that holds every principal to l: those that
// Require or Identify has found in front of it by their ID, others by the
// prefix of their address (IPv4 /32, IPv6 /64). What is too much gets 429 with
// Retry-After. Handlers made by one NewLimit share its count.
func NewLimit(l Limits) (func(http.Handler) http.Handler, error) {
	if err := l.orDefault(); err != nil {
		return nil, err
	}
	// Two tables, so that nobody crowds out a principal without being one.
	known := newTable(l)
	anonymous := newTable(l)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			t, key := anonymous, ""
			if p, ok := FromContext(r.Context()); ok {
				t, key = known, p.ID
			} else {
				key = prefix(l.Proxies.ClientAddr(r))
			}
			e, wait := t.enter(key, time.Now())
			switch {
			case e == nil && l.Refuse != nil:
				SetRetryAfter(w, wait)
				l.Refuse.ServeHTTP(w, r)
				return
			case e == nil:
				tooSoon(w, http.StatusTooManyRequests, wait)
				return
			}
			defer func() { t.leave(e, time.Now()) }()
			next.ServeHTTP(w, r)
		})
	}, nil
}

func (l *Limits) orDefault() error {
	if l.Rate < 0 || math.IsNaN(l.Rate) || math.IsInf(l.Rate, 0) || l.Burst < 0 || l.Concurrent < 0 || l.principals < 0 {
		return errors.New("auth: limits: a number that is negative or none")
	}
	l.Rate = cmp.Or(l.Rate, 20)
	l.Burst = cmp.Or(l.Burst, 40)
	l.Concurrent = cmp.Or(l.Concurrent, 32)
	l.principals = cmp.Or(l.principals, 10_000)
	return nil
}

// LimitNames holds requests to l by a name, such as that of a signed-in person. enter counts a request until
// leave is called. It returns no leave, and the time to wait, for a request that exceeds l.
func (l Limits) LimitNames() (enter func(name string) (leave func(), wait time.Duration), err error) {
	if err := l.orDefault(); err != nil {
		return nil, err
	}
	t := newTable(l)
	return func(name string) (func(), time.Duration) {
		e, wait := t.enter(name, time.Now())
		if e == nil {
			return nil, wait
		}
		return func() { t.leave(e, time.Now()) }, 0
	}, nil
}

func remoteAddr(r *http.Request) netip.Addr {
	a, _ := netip.ParseAddrPort(r.RemoteAddr)
	return a.Addr()
}

// prefix is what one person can hold many addresses of. Requests without an
// address, as over a Unix socket, are one.
func prefix(a netip.Addr) string {
	a = a.Unmap().WithZone("")
	bits := 32
	if a.Is6() {
		bits = 64
	}
	p, err := a.Prefix(bits)
	if err != nil || !p.IsValid() {
		return ""
	}
	return p.String()
}

// A table holds the allowances of those who are told apart.
//
// One that is taken out must be whole, or taking it out would be a gift: whoever
// can come under many names could then spend as much as they like. If there is
// none to take out, newcomers share what there is for the rest.
type table struct {
	limits Limits
	whole  time.Duration // after which an unused allowance is whole again

	mu   sync.Mutex
	all  map[string]*allowance
	idle *list.List // of *allowance with nothing under way, the latest used in front
	rest *allowance // of those who are not in all
}

type allowance struct {
	key   string
	rate  *rate.Limiter
	used  time.Time
	count int           // requests under way
	place *list.Element // in table.idle; nil: not there
}

func newTable(l Limits) *table {
	t := &table{limits: l, all: map[string]*allowance{}, idle: list.New()}
	t.whole = time.Duration(min(float64(l.Burst)/l.Rate, 1e6) * float64(time.Second))
	t.rest = t.newAllowance("")
	return t
}

func (t *table) newAllowance(key string) *allowance {
	return &allowance{key: key, rate: rate.NewLimiter(rate.Limit(t.limits.Rate), t.limits.Burst)}
}

// enter counts a request for the key. A nil allowance means that it is too much,
// and how long to wait.
func (t *table) enter(key string, now time.Time) (*allowance, time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.find(key, now)
	if a.count >= t.limits.Concurrent {
		return nil, time.Second
	}
	take := a.rate.ReserveN(now, 1)
	if wait := take.DelayFrom(now); wait > 0 {
		take.CancelAt(now)
		return nil, wait
	}
	a.count++
	a.used = now
	if a.place != nil {
		t.idle.Remove(a.place)
		a.place = nil
	}
	return a, 0
}

func (t *table) leave(a *allowance, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a.count--
	if a.count == 0 && a != t.rest {
		a.used = now
		a.place = t.idle.PushFront(a)
	}
}

// find returns the allowance of the key, makes one, or returns that of the rest.
func (t *table) find(key string, now time.Time) *allowance {
	if a := t.all[key]; a != nil {
		return a
	}
	if len(t.all) >= t.limits.principals {
		last := t.idle.Back()
		if last == nil || now.Sub(last.Value.(*allowance).used) < t.whole {
			return t.rest
		}
		delete(t.all, t.idle.Remove(last).(*allowance).key)
	}
	a := t.newAllowance(key)
	t.all[key] = a
	return a
}
