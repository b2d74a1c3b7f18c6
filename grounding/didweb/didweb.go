// SPDX-License-Identifier: Apache-2.0

// Package didweb resolves the keys of did:web identifiers, over https and under guard.
//
// A DID is an address that a stranger chose. So the host is a public name, every
// address that it has is checked and one of those that were checked is connected
// to; nothing is followed, nothing unpacked, and all is bounded: octets, time,
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
	// Offline answers every question about did:web with Disabled.
	Offline bool

	Timeout time.Duration // of one fetch, waiting for its turn included; 0: 10 s
	TTL     time.Duration // how long a document is believed; 0: 10 min
	// Retry is how long a failure is remembered, and the least time between two
	// fetches of one document; 0: 30 s.
	Retry   time.Duration
	Entries int // DIDs that are remembered; 0: 1,024

	// Changed is told that the document of a DID is another one than was last seen
	// in this process; nil: nobody is.
	Changed func(Change)

	// Lookup finds the addresses of a host; nil: the system's resolver. They are
	// checked whoever finds them.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	Now    func() time.Time // nil: time.Now

	// DangerouslyDial connects to an address that was checked; nil: over TCP. It is
	// for tests, whose servers are on this machine.
	DangerouslyDial func(ctx context.Context, network, address string) (net.Conn, error)
	// DangerouslyRoots are the certificate authorities; nil: the system's.
	DangerouslyRoots *x509.CertPool
}

// A Change says that the document of a DID is not what it was.
type Change struct {
	DID           string // allowed by package href
	Before, After [sha256.Size]byte
}

// A Reason says why a key cannot be known now. It is a constant of this package.
type Reason string

// The reasons.
const (
	Disabled     Reason = "did:web is not enabled"
	Busy         Reason = "too many documents are being fetched"
	Recent       Reason = "the document does not list the key, and was fetched a moment ago"
	NoAddress    Reason = "the host has no address"
	NotPublic    Reason = "the host has an address that is not public"
	Unreachable  Reason = "the host cannot be reached"
	Certificate  Reason = "the host's certificate is not valid"
	Insecure     Reason = "TLS failed"
	Timeout      Reason = "the host takes too long"
	Exchange     Reason = "the host does not speak HTTP as it should"
	Redirected   Reason = "the host redirects"
	Absent       Reason = "the host has no such document"
	Status       Reason = "the host answers with an error"
	WrongType    Reason = "the document has another media type"
	Encoded      Reason = "the document is compressed"
	TooLarge     Reason = "the document is too large"
	NotADocument Reason = "the document is not JSON"
)

// An Error says why a key cannot be known now. It holds nothing that a host said.
type Error struct{ Reason Reason }

func (e *Error) Error() string { return "didweb: " + string(e.Reason) }

// Temporary reports whether another try may succeed without anything being
// changed on this side.
func (e *Error) Temporary() bool { return e.Reason != Disabled }

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
	o.Timeout = cmp.Or(max(o.Timeout, 0), 10*time.Second)
	o.TTL = cmp.Or(max(o.TTL, 0), 10*time.Minute)
	o.Retry = cmp.Or(max(o.Retry, 0), 30*time.Second)
	o.Entries = cmp.Or(max(o.Entries, 0), 1024)
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Resolver{
		o:       o,
		get:     newGetter(&o),
		slots:   newSlots(),
		known:   newCache(o.Entries),
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
	if r.o.Offline {
		return nil, &Error{Disabled}
	}
	asked := r.o.Now()
	doc, err := r.document(ctx, at, time.Time{})
	if err != nil {
		return nil, err
	}
	key, err := attest.DocumentKey(doc.body, method)
	if err == nil || !doc.fetched.Before(asked) {
		return key, final(err)
	}
	// Keys are rotated: only a document as it is now can say no for certain.
	if asked.Sub(doc.fetched) < r.o.Retry {
		return nil, &Error{Recent}
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
	return &Error{NotADocument}
}
