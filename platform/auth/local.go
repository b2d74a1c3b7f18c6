// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/text/finding"
)

// LocalOptions configures Local.
type LocalOptions struct {
	Hosts, Origins []string

	// Log gets a line for a refused request with the name of the setting that may allow it, but few lines
	// a minute. It may be nil.
	Log                          *slog.Logger
	HostsSetting, OriginsSetting string
}

// Local refuses requests whose Host is not one of Hosts or whose Origin, if there
// is one, is not one of Origins (DNS rebinding). No hosts: those of loopback,
// which are localhost and every loopback address. Pages of Origins may read the
// answers of next, refusals included (CORS).
//
// A host is a name or an IP address, an IPv6 one in brackets, and perhaps a port;
// without one, every port will do. An origin is scheme://host, perhaps with a
// port; that of the request's own host always counts as one of them, and "null"
// never does, since every sandboxed frame has it. Case, a dot behind the name, a
// scheme's usual port and the spelling of an address make no difference.
//
// The address itself at which a request arrived, as Prometheus and a health check of a load balancer
// use it, always is one of hosts: a page that has a name rebound to it sends that name.
//
// What is not a host or an origin matches nothing; CheckLocal finds it.
func Local(o LocalOptions, next http.Handler) http.Handler {
	l := &local{next: next, loopback: len(o.Hosts) == 0, opt: o}
	for _, s := range o.Hosts {
		if h, ok := parseAuthority(s); ok {
			l.hosts = append(l.hosts, h)
		}
	}
	for _, s := range o.Origins {
		if o, ok := parseOrigin(s); ok {
			l.origins = append(l.origins, o)
		}
	}
	return l
}

// CheckLocal reports every mistake in what Local is to be given.
func CheckLocal(hosts, origins []string) error {
	var errs []error
	for _, s := range hosts {
		if _, ok := parseAuthority(s); !ok {
			errs = append(errs, fmt.Errorf("auth: not a host: %s", finding.Quote(s)))
		}
	}
	for _, s := range origins {
		if _, ok := parseOrigin(s); !ok {
			errs = append(errs, fmt.Errorf("auth: not an origin: %s", finding.Quote(s)))
		}
	}
	return errors.Join(errs...)
}

type local struct {
	hosts    []authority
	loopback bool // instead of hosts
	origins  []origin
	next     http.Handler
	opt      LocalOptions

	mu     sync.Mutex
	since  time.Time
	logged map[string]bool // refusals since then
}

func (l *local) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	host, ok := parseAuthority(r.Host)
	if !ok || !l.allowsHost(host) && !arrivedAt(r, host) {
		l.refuseHeader(w, "Host", r.Host, l.opt.HostsSetting)
		return
	}
	values := r.Header["Origin"]
	if !l.allowsOrigin(values, host) {
		l.refuseHeader(w, "Origin", strings.Join(values, ", "), l.opt.OriginsSetting)
		return
	}
	if l.answeredPreflight(w, r) {
		return
	}
	l.next.ServeHTTP(w, r)
}

const (
	refusalsLogged = 16 // different ones in refusalsWait
	refusalsWait   = time.Minute
)

// refuseHeader refuses a request for the value of a header.
func (l *local) refuseHeader(w http.ResponseWriter, header, value, setting string) {
	value = finding.Quote(value)
	l.mu.Lock()
	if now := time.Now(); now.Sub(l.since) >= refusalsWait {
		l.since, l.logged = now, map[string]bool{}
	}
	key := header + value
	told := l.opt.Log == nil || l.logged[key] || len(l.logged) >= refusalsLogged
	if !told {
		l.logged[key] = true
	}
	l.mu.Unlock()
	if !told {
		l.opt.Log.Warn("a request was refused: its "+header+" is not a configured one", "value", value, "allow_with", cmp.Or(setting, "no setting"))
	}
	refuse(w, http.StatusForbidden)
}

func (l *local) allowsHost(h authority) bool {
	if l.loopback {
		return h.loopback()
	}
	return slices.ContainsFunc(l.hosts, func(a authority) bool {
		return a == h || a.port == 0 && a.name == h.name && a.addr == h.addr
	})
}

// arrivedAt reports whether h is the address and port, not a name, of this end of the connection.
func arrivedAt(r *http.Request, h authority) bool {
	at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok || !h.addr.IsValid() {
		return false
	}
	own := at.AddrPort()
	return own.Addr().Unmap() == h.addr && own.Port() == h.port
}

func (l *local) allowsOrigin(values []string, host authority) bool {
	if len(values) == 0 {
		return true // no browser, or nothing that one page does to another
	}
	if len(values) > 1 {
		return false
	}
	o, ok := parseOrigin(values[0])
	if !ok {
		return false
	}
	return slices.Contains(l.origins, o) || o == ownOrigin(o.scheme, host)
}

// ownOrigin is the origin of what the host itself serves by the scheme. TLS may
// end in front of us, so both schemes count.
func ownOrigin(scheme string, host authority) origin {
	if scheme != "http" && scheme != "https" {
		return origin{}
	}
	if host.port == 0 {
		host.port = usualPort[scheme]
	}
	return origin{scheme, host}
}

var usualPort = map[string]uint16{"http": 80, "https": 443}

// An authority is a host, by name or by address, and a port (0: none given).
type authority struct {
	name string // in lower case, without a dot behind it
	addr netip.Addr
	port uint16
}

func (a authority) loopback() bool { return a.name == "localhost" || a.addr.IsLoopback() }

// parseAuthority parses a host and perhaps a port, strictly.
func parseAuthority(s string) (a authority, ok bool) {
	if len(s) > 300 {
		return a, false
	}
	host, port, hasPort := s, "", false
	if inner, bracket := strings.CutPrefix(s, "["); bracket {
		var rest string
		if host, rest, ok = strings.Cut(inner, "]"); !ok {
			return a, false
		}
		addr, err := netip.ParseAddr(host)
		if err != nil || !addr.Is6() || addr.Zone() != "" {
			return a, false
		}
		a.addr = addr.Unmap()
		if port, hasPort = strings.CutPrefix(rest, ":"); rest != "" && !hasPort {
			return authority{}, false
		}
	} else {
		host, port, hasPort = strings.Cut(s, ":")
		if addr, err := netip.ParseAddr(host); err == nil {
			a.addr = addr
		} else if a.name, ok = hostName(host); !ok {
			return a, false
		}
	}
	if hasPort {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return authority{}, false
		}
		a.port = uint16(n)
	}
	return a, true
}

// hostName is a DNS name in the one form that is compared. Nothing that a browser
// might take for an IPv4 address in another spelling (127.1, 0x7f.1) is a name.
func hostName(s string) (string, bool) {
	s = strings.TrimSuffix(s, ".")
	if len(s) > 253 {
		return "", false
	}
	var last string
	for label := range strings.SplitSeq(s, ".") {
		if len(label) > 63 || !isName(label, "-_") {
			return "", false
		}
		last = label
	}
	return strings.ToLower(s), last[0] < '0' || last[0] > '9'
}

// An origin is what a browser says of the page that makes a request (RFC 6454).
type origin struct {
	scheme string
	host   authority // with its port, unless the scheme has no usual one
}

func parseOrigin(s string) (o origin, ok bool) {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok || len(scheme) > 64 || !isName(scheme, "+-.") {
		return o, false
	}
	o.scheme = strings.ToLower(scheme)
	if o.host, ok = parseAuthority(rest); !ok {
		return origin{}, false
	}
	if o.host.port == 0 {
		o.host.port = usualPort[o.scheme]
	}
	return o, true
}
