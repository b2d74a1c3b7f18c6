// SPDX-License-Identifier: Apache-2.0

// Package didweb resolves the keys of did:web identifiers, over https and under guard.
//
// A DID is an address that a stranger chose. So the host is a public name, every
// address that it has is checked and one of those that were checked is connected
// to; nothing is followed, nothing unpacked, and all is bounded: bytes, time,
// connections, memory. Which of this failed is an Error of constant text.
package didweb

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
)

// Options are the bounds of a Resolver; the zero value is the strict choice.
type Options struct {
	// offline answers every question about did:web with disabled.
	offline bool

	timeout time.Duration // of one fetch, waiting for its turn included; 0: 10 s
	ttl     time.Duration // how long a document is believed; 0: 10 min
	// retry is how long a failure is remembered, and the least time between two
	// fetches of one document; 0: 30 s.
	retry   time.Duration
	entries int // DIDs that are remembered; 0: 1,024

	// changed is told that the document of a DID is another one than was last seen
	// in this process; nil: nobody is.
	changed func(change)

	// lookup finds the addresses of a host; nil: the system's resolver. They are
	// checked whoever finds them.
	lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	now    func() time.Time // nil: time.Now

	// dangerouslyDial connects to an address that was checked; nil: over TCP. It is
	// for tests, whose servers are on this machine.
	dangerouslyDial func(ctx context.Context, network, address string) (net.Conn, error)
	// dangerouslyRoots are the certificate authorities; nil: the system's.
	dangerouslyRoots *x509.CertPool
}

// A change says that the document of a DID is not what it was.
type change struct {
	did           string // allowed by package href
	before, after [sha256.Size]byte
}

// A Reason says why a key cannot be known now. It is a constant of this package.
type Reason string

// The reasons.
const (
	disabled     Reason = "did:web is not enabled"
	Busy         Reason = "too many documents are being fetched"
	recent       Reason = "the document does not list the key, and was fetched a moment ago"
	noAddress    Reason = "the host has no address"
	notPublic    Reason = "the host has an address that is not public"
	unreachable  Reason = "the host cannot be reached"
	certificate  Reason = "the host's certificate is not valid"
	insecure     Reason = "TLS failed"
	timeout      Reason = "the host takes too long"
	exchange     Reason = "the host does not speak HTTP as it should"
	redirected   Reason = "the host redirects"
	absent       Reason = "the host has no such document"
	Status       Reason = "the host answers with an error"
	wrongType    Reason = "the document has another media type"
	encoded      Reason = "the document is compressed"
	tooLarge     Reason = "the document is too large"
	notADocument Reason = "the document is not JSON"
)

// An Error says why a key cannot be known now. It holds nothing that a host said.
type Error struct{ reason Reason }

func (e *Error) Error() string { return "didweb: " + string(e.reason) }

// Temporary reports whether another try may succeed without anything being
// changed on this side.
func (e *Error) Temporary() bool { return e.reason != disabled }

// A Resolver is an attest.KeyResolver for did:key and did:web. It is safe for
// concurrent use.
type Resolver struct {
	o     Options
	get   *getter
	slots slots

	mu      sync.Mutex
	known   cache
	flights map[string]*flight
}

// New makes a Resolver.
func New(o Options) *Resolver {
	o.timeout = cmp.Or(max(o.timeout, 0), 10*time.Second)
	o.ttl = cmp.Or(max(o.ttl, 0), 10*time.Minute)
	o.retry = cmp.Or(max(o.retry, 0), 30*time.Second)
	o.entries = cmp.Or(max(o.entries, 0), 1024)
	if o.now == nil {
		o.now = time.Now
	}
	return &Resolver{
		o:       o,
		get:     newGetter(&o),
		slots:   newSlots(),
		known:   newCache(o.entries),
		flights: map[string]*flight{},
	}
}

// ResolveKey implements attest.KeyResolver. The error wraps ErrNotAuthorised for
// what no other try can change: a DID of an unknown method, one that is no
// address of a public host, and a key that the document, as it is now, does not
// list. Otherwise it is an *Error, or that of the context.
func (r *Resolver) ResolveKey(ctx context.Context, method string) (ed25519.PublicKey, error) {
	did, _, _ := strings.Cut(method, "#")
	if !strings.HasPrefix(did, "did:web:") {
		return attest.DIDKey{}.ResolveKey(ctx, method)
	}
	at, err := locate(did)
	if err != nil {
		return nil, err
	}
	if r.o.offline {
		return nil, &Error{disabled}
	}
	asked := r.o.now()
	doc, err := r.document(ctx, at, time.Time{})
	if err != nil {
		return nil, err
	}
	key, err := attest.DocumentKey(doc.body, method)
	if err == nil || !doc.fetched.Before(asked) {
		return key, final(err)
	}
	// Keys are rotated: only a document as it is now can say no for certain.
	if asked.Sub(doc.fetched) < r.o.retry {
		return nil, &Error{recent}
	}
	if doc, err = r.document(ctx, at, asked); err != nil {
		return nil, err
	}
	key, err = attest.DocumentKey(doc.body, method)
	return key, final(err)
}

func final(err error) error {
	if err == nil || errors.Is(err, attest.ErrNotAuthorised) {
		return err
	}
	return &Error{notADocument}
}
