// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// Bounds of a JWK Set.
const (
	maxKeys    = 128
	minRSABits = 2048
	// minLoad is the shortest time from the end of one load to the next one that
	// a token can cause, and the longest one between attempts.
	minLoad = time.Minute
	// maxWaiting bounds the requests that wait for a load.
	maxWaiting = 256
	// maxSigned bounds the tokens with a valid signature that are remembered.
	maxSigned = 4096
)

// A verifyKey is a public key of an issuer.
type verifyKey struct {
	kid    string
	alg    string // "": every one for which the key is made
	public any    // ed25519.PublicKey, *ecdsa.PublicKey or *rsa.PublicKey
}

// fits reports whether k may check a signature of alg.
func (k verifyKey) fits(alg jose.SignatureAlgorithm) bool {
	if k.alg != "" && k.alg != string(alg) {
		return false
	}
	switch k.public.(type) {
	case ed25519.PublicKey:
		return alg == jose.EdDSA
	case *ecdsa.PublicKey:
		return alg == jose.ES256
	case *rsa.PublicKey:
		return alg == jose.RS256 || alg == jose.PS256
	}
	return false
}

// verifySignature reports whether one of the keys, which findKeys returned with that load, has signed the token. It
// remembers a valid token until the next load. At most half of the processors check other tokens, so that a
// flood of invalid ones leaves the rest to callers with valid ones.
func (s *keySet) verifySignature(ctx context.Context, token string, alg jose.SignatureAlgorithm, keys []verifyKey, load time.Time) (bool, error) {
	digest := sha256.Sum256([]byte(token))
	s.mu.Lock()
	known := s.signed[digest] && s.loaded.Equal(load)
	s.mu.Unlock()
	if known {
		return true, nil
	}
	select {
	case s.checking <- struct{}{}:
		defer func() { <-s.checking }()
	case <-ctx.Done():
		return false, &unavailable{"the request was given up", time.Second}
	}
	if !isSigned(token, alg, keys) {
		return false, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loaded.Equal(load) {
		if s.signed == nil || len(s.signed) >= maxSigned {
			s.signed = map[[sha256.Size]byte]bool{}
		}
		s.signed[digest] = true
	}
	return true, nil
}

// isSigned reports whether one of the keys, which fit alg, has signed the token.
func isSigned(token string, alg jose.SignatureAlgorithm, keys []verifyKey) bool {
	jws, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{alg})
	return err == nil && slices.ContainsFunc(keys, func(k verifyKey) bool {
		_, err := jws.Verify(k.public)
		return err == nil
	})
}

// parseKeys reads a JWK Set. Keys that are not for checking one of our
// algorithms are left out, as RFC 7517 §5 wants it; so are weak ones and those
// that hold more than a public key.
func parseKeys(src []byte) ([]verifyKey, error) {
	var d strictjson.Doc
	if err := d.Reset(src, strictjson.Limits{Bytes: maxDocument, Depth: 16}); err != nil {
		return nil, errors.New("the keys are not JSON")
	}
	set := d.Root().Get("keys")
	if set.Kind() != '[' || set.Len() > maxKeys {
		return nil, errors.New("the keys are not a JWK Set")
	}
	var out []verifyKey
	for v := range set.Elements() {
		if k, ok := parseKey(v); ok {
			out = append(out, k)
		}
	}
	return out, nil
}

func parseKey(v strictjson.Value) (k verifyKey, ok bool) {
	// What is not public is not parsed at all: checking a private key is dear.
	for _, name := range []string{"k", "d", "p", "q", "dp", "dq", "qi", "oth", "priv"} {
		if v.Get(name).Exists() {
			return k, false
		}
	}
	use := "sig"
	var ops []string
	if !text(v, "use", &use) || use != "sig" {
		return k, false
	}
	if o := v.Get("key_ops"); o.Exists() && (!texts(o, &ops) || !slices.Contains(ops, "verify")) {
		return k, false
	}
	var jwk jose.JSONWebKey
	if err := jwk.UnmarshalJSON(v.Raw()); err != nil || !jwk.Valid() {
		return k, false
	}
	switch pub := jwk.Key.(type) {
	case ed25519.PublicKey:
		ok = true
	case *ecdsa.PublicKey:
		ok = pub.Curve == elliptic.P256()
	case *rsa.PublicKey:
		ok = pub.N.BitLen() >= minRSABits && pub.E%2 == 1
	}
	return verifyKey{jwk.KeyID, jwk.Algorithm, jwk.Key}, ok
}

// A keySet holds the keys of one issuer and fetches them anew when they are old,
// or when a token names one that is not there. One load runs at a time.
type keySet struct {
	load    func(context.Context) ([]verifyKey, error) // its error is constant text
	now     func() time.Time
	refresh time.Duration // age at which keys are fetched again
	stale   time.Duration // age from which they do not count any more
	timeout time.Duration // of one load
	log     *slog.Logger

	mu       sync.Mutex
	keys     []verifyKey
	loaded   time.Time                  // when keys came; zero: never
	tried    time.Time                  // when the latest load ended
	failures int                        // loads that failed since keys came
	running  chan struct{}              // closed when the running load ends; nil: no load runs
	waiting  int                        // requests that wait for it
	signed   map[[sha256.Size]byte]bool // digests of tokens that keys have signed
	checking chan struct{}              // places for checks of signatures
}

// findKeys returns the keys that may have signed a token with the header h, and when they were loaded. Old keys
// count while new ones are being fetched. The error is a *refusal if the issuer
// has no such key, and *unavailable if that cannot be known.
func (s *keySet) findKeys(ctx context.Context, h joseHeader) ([]verifyKey, time.Time, error) {
	s.mu.Lock()
	now := s.now()
	found := s.match(now, h)
	var wait <-chan struct{}
	if len(found) == 0 || now.Sub(s.loaded) >= s.refresh {
		wait = s.start(now)
	}
	if len(found) > 0 || wait == nil {
		defer s.mu.Unlock()
		return s.checkFound(now, found)
	}
	if s.waiting >= maxWaiting {
		defer s.mu.Unlock()
		return nil, time.Time{}, &unavailable{"too many requests wait for the issuer's keys", time.Second}
	}
	s.waiting++
	s.mu.Unlock()

	gaveUp := false
	select {
	case <-wait:
	case <-ctx.Done():
		gaveUp = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting--; gaveUp {
		return nil, time.Time{}, &unavailable{"the request was given up", time.Second}
	}
	now = s.now()
	return s.checkFound(now, s.match(now, h))
}

// checkFound returns found, or the reason why it is empty. The lock is held.
func (s *keySet) checkFound(now time.Time, found []verifyKey) ([]verifyKey, time.Time, error) {
	switch {
	case len(found) > 0:
		return found, s.loaded, nil
	case s.failures > 0 || !s.usable(now):
		return nil, s.loaded, &unavailable{"the issuer's keys cannot be had", s.due().Sub(now)}
	default:
		return nil, s.loaded, invalid("the token's key is unknown")
	}
}

func (s *keySet) usable(now time.Time) bool {
	return !s.loaded.IsZero() && now.Sub(s.loaded) < s.stale
}

// match returns the keys that fit h. A token that names no key is checked with
// the only one that fits. The lock is held.
func (s *keySet) match(now time.Time, h joseHeader) (found []verifyKey) {
	if !s.usable(now) {
		return nil
	}
	for _, k := range s.keys {
		if k.fits(h.alg) && (h.kid == "" || k.kid == h.kid) {
			found = append(found, k)
		}
	}
	if len(found) > 1 && h.kid == "" || len(found) > 4 {
		return nil // a signature is not checked with keys at random
	}
	return found
}

// due is when the next load may begin: 1, 2, 4 … s after one that failed.
func (s *keySet) due() time.Time {
	if s.tried.IsZero() {
		return s.tried
	}
	wait := minLoad
	if 0 < s.failures && s.failures <= 6 {
		wait = time.Second << (s.failures - 1)
	}
	return s.tried.Add(wait)
}

// start begins a load, unless one runs or it is too soon, and returns what is
// closed at its end; nil if none runs. The load belongs to no request, since many
// may wait for it. The lock is held.
func (s *keySet) start(now time.Time) <-chan struct{} {
	if s.running != nil {
		return s.running
	}
	if now.Before(s.due()) {
		return nil
	}
	done := make(chan struct{})
	s.running = done
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
		defer cancel()
		keys, err := s.load(ctx)
		s.finish(keys, err)
		close(done)
	}()
	return done
}

// finish takes over what a load has brought, and tells the operator.
func (s *keySet) finish(keys []verifyKey, err error) {
	failures, usable := s.take(keys, err)
	switch {
	case err != nil:
		s.log.Warn("the keys of the issuer could not be fetched", "error", err, "failures", failures, "usable", usable)
	case failures > 0 || len(keys) == 0:
		s.log.Info("the keys of the issuer were fetched", "keys", len(keys), "failures", failures)
	}
}

// take notes how a load has ended. An issuer that answers without a key has withdrawn
// them all; one that does not answer has withdrawn nothing. It returns how many loads
// have failed in a row, and whether there are keys by which tokens can be judged.
func (s *keySet) take(keys []verifyKey, err error) (failures int, usable bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = nil
	s.tried = s.now()
	if err != nil {
		s.failures++
		return s.failures, s.usable(s.tried)
	}
	failures = s.failures
	s.keys, s.loaded, s.failures, s.signed = keys, s.tried, 0, nil
	return failures, true
}
