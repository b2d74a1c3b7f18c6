// SPDX-License-Identifier: Apache-2.0

// Package session makes and opens the ids of legacy sessions, which hold what it takes to bring a session back.
//
// An id is a sealed token: base64url(key id ‖ nonce ‖ AES-256-GCM), at most [MaxToken] bytes of
// visible ASCII. Of several replicas, each writes its label and a point before it, by which a load balancer can
// send requests to the replica that has begun the session; the label is authenticated with the token. It holds a random number, the server, a digest of the session's owner, when the
// session began and until when it may be brought back, the version that was negotiated, and the
// parameters of the client's initialize, where these fit. What changes during a session (the log
// level, subscriptions), and parameters that do not fit, stand sealed in a [Store].
package session

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/keyring"
)

// MaxToken is the length of the longest token in bytes.
const MaxToken = 2048

// Life is the time for which a session may be brought back after it began, unless Options say otherwise.
const Life = 30 * 24 * time.Hour

// The errors of Open. A client may see any of them.
var (
	ErrToken   = errors.New("session: not an id that this installation has given")
	ErrExpired = errors.New("session: the session began too long ago to be brought back")
)

// A Session is what a token holds.
type Session struct {
	Number  [16]byte          // random
	Server  string            // "": all servers as one
	Owner   [sha256.Size]byte // of whom it is: see Belongs
	Began   time.Time         // in whole seconds
	Until   time.Time         // from then on it is not brought back
	Version string            // negotiated by initialize; "": Stored
	Params  []byte            // of the client's initialize; nil where they stand in the store
	Stored  bool              // the store holds the version and the parameters
}

// ID returns the name of the session in the store: a digest, from which the token cannot be made.
func (s *Session) ID() string {
	sum := sha256.Sum256(append([]byte("pellucid session id v1\x00"), s.Number[:]...))
	return hex.EncodeToString(sum[:])
}

// Belongs reports whether owner has begun the session.
func (s *Session) Belongs(owner string) bool {
	digest := ownerDigest(owner)
	return subtle.ConstantTimeCompare(digest[:], s.Owner[:]) == 1
}

func ownerDigest(owner string) [sha256.Size]byte { return sha256.Sum256([]byte(owner)) }

// Tokens makes and opens tokens with the keys of an installation.
type Tokens struct {
	box   *keyring.Box
	life  time.Duration
	label string // with its point
	now   func() time.Time
}

// NewTokens returns Tokens. A life of 0 stands for Life. Tokens that it makes begin with the label of the replica; ""
// stands for no label. A label has no point.
func NewTokens(ring *keyring.Ring, life time.Duration, label string) *Tokens {
	if life <= 0 {
		life = Life
	}
	if label != "" {
		label += "."
	}
	return &Tokens{box: ring.Box("pellucid session token v1"), life: life, label: label, now: time.Now}
}

// New begins a session of an owner with a server.
func (t *Tokens) New(server, owner string) *Session {
	s := &Session{Server: server, Owner: ownerDigest(owner), Began: t.now().UTC().Truncate(time.Second)}
	rand.Read(s.Number[:]) // never fails
	s.Until = s.Began.Add(t.life)
	return s
}

// The layout of a token's plain text: a version, flags, and the fields of a Session in their order.
// Texts stand behind their length in one byte; the parameters are the rest.
const (
	layout     = 1
	flagStored = 1
	fixed      = 2 + 16 + sha256.Size + 8 + 8
)

// Seal returns the token of a session. ok is false where it would be too long; it is never too
// long without parameters.
func (t *Tokens) Seal(s *Session) (token string, ok bool, err error) {
	if len(s.Server) > 255 || len(s.Version) > 255 {
		return "", false, errors.New("session: the name of a server or version is too long for a token")
	}
	b := append(make([]byte, 0, fixed+2+len(s.Server)+len(s.Version)+len(s.Params)), layout, 0)
	if s.Stored {
		b[1] = flagStored
	}
	b = append(append(b, s.Number[:]...), s.Owner[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(s.Began.Unix()))
	b = binary.BigEndian.AppendUint64(b, uint64(s.Until.Unix()))
	for _, text := range []string{s.Server, s.Version} {
		b = append(append(b, byte(len(text))), text...)
	}
	b = append(b, s.Params...)
	if len(t.label)+base64.RawURLEncoding.EncodedLen(len(b)+keyring.Overhead) > MaxToken {
		return "", false, nil
	}
	return t.label + base64.RawURLEncoding.EncodeToString(t.box.Seal(b, []byte(t.label))), true, nil
}

// Open returns what a token holds. It does not say whose it is: ask Belongs. The error is ErrToken or
// ErrExpired; with the latter it returns the session too.
func (t *Tokens) Open(token string) (*Session, error) {
	if len(token) > MaxToken {
		return nil, ErrToken
	}
	body := strings.IndexByte(token, '.') + 1
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(token[body:])
	if err != nil || base64.RawURLEncoding.EncodedLen(len(sealed)) != len(token)-body { // the decoder skips line ends
		return nil, ErrToken
	}
	b, err := t.box.Open(sealed, []byte(token[:body]))
	if err != nil {
		return nil, ErrToken
	}
	s, ok := parse(b)
	switch {
	case !ok:
		return nil, ErrToken
	case !t.now().Before(s.Until):
		return s, ErrExpired
	}
	return s, nil
}

// parse reads the plain text of a token. Only this program has written it; a later release may
// have written another layout.
func parse(b []byte) (*Session, bool) {
	if len(b) < fixed || b[0] != layout || b[1]&^flagStored != 0 {
		return nil, false
	}
	s := &Session{Stored: b[1] == flagStored}
	b = b[2:]
	b = b[copy(s.Number[:], b):]
	b = b[copy(s.Owner[:], b):]
	s.Began, s.Until = unix(b), unix(b[8:])
	b = b[16:]
	for _, text := range []*string{&s.Server, &s.Version} {
		if len(b) == 0 || len(b)-1 < int(b[0]) {
			return nil, false
		}
		*text, b = string(b[1:1+int(b[0])]), b[1+int(b[0]):]
	}
	if len(b) > 0 {
		s.Params = b
	}
	return s, s.Stored == (len(b) == 0)
}

func unix(b []byte) time.Time { return time.Unix(int64(binary.BigEndian.Uint64(b)), 0).UTC() }
