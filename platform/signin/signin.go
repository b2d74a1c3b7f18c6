// SPDX-License-Identifier: Apache-2.0

// Package signin keeps who has signed in to the console of this program, and for how long.
//
// A person's browser has a secret of 32 random bytes in a cookie. The store has its SHA-256 only, so that
// a copy of the store signs no one in. Each sign-in makes a new secret; a secret that a client brings with it is
// never taken over. A session ends when it is not used for some time, at an absolute end, when the person
// signs out, or when an operator ends it.
//
// A link signs one person in: it holds a secret of the same kind, lasts two minutes and is spent once.
package signin

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"time"
)

// An ID is the SHA-256 of a secret.
type ID [sha256.Size]byte

// How says by what a person has signed in.
type How string

// The ways.
const (
	ByLink   How = "link"   // a link that a person with access to the installation has made
	ByToken  How = "token"  // a bearer token
	ByOpenID How = "openid" // a provider of OpenID Connect
)

// A Session is a person who has signed in.
type Session struct {
	ID     ID
	Name   string // 16 hexadecimal digits, which name the session in lists; they say nothing of the secret
	Person string // a principal's name
	Scopes []string
	How    How
	// Source names what of the configuration has accepted the person: a token, an issuer of tokens, or a provider. It is a
	// digest, from which no secret follows; zero for a link.
	Source [sha256.Size]byte

	Began time.Time
	Seen  time.Time // the last use, to about a minute
	Ends  time.Time // when it ends if it is not used again, as the process says that has seen it last
	Until time.Time // the absolute end: not after that of the credential by which the person has signed in
}

// A Store keeps sessions and links. What it is given holds no secret.
type Store interface {
	// PutSignInLink keeps a link for a person until it is spent or over.
	PutSignInLink(ctx context.Context, id ID, person string, until time.Time) error
	// HasSignInLink reports whether a link is there that is not over.
	HasSignInLink(ctx context.Context, id ID, now time.Time) (bool, error)
	// SpendSignInLink removes a link that is not over and returns its person, to one caller alone. The
	// others get ErrNone.
	SpendSignInLink(ctx context.Context, id ID, now time.Time) (person string, err error)
	// PutSignIn keeps a new session. It ends sessions of the same person, so that the person has at most own and all
	// people have at most most: those that were not used the longest. It ends no session of others; the error is
	// ErrFull where that is not enough.
	PutSignIn(ctx context.Context, s Session, own, most int) error
	// SignIn returns the session with this id; ErrNone if there is none.
	SignIn(ctx context.Context, id ID) (Session, error)
	// SeeSignIn notes a use, and when the session ends without another one.
	SeeSignIn(ctx context.Context, id ID, seen, ends time.Time) error
	// EndSignIn removes the session with this name, and reports whether there was one.
	EndSignIn(ctx context.Context, name string) (bool, error)
	// SignIns lists all sessions, the last used first.
	SignIns(ctx context.Context) ([]Session, error)
	// SweepSignIns removes what is over: links and sessions past their end, whatever is in force where it is called.
	SweepSignIns(ctx context.Context, now time.Time) error
}

// Errors, to be compared with errors.Is.
var (
	// ErrNone means that there is no such session or link, or that it is over.
	ErrNone = errors.New("signin: no such session or link, or it is over")
	// ErrFull means that other people have all sessions that there may be.
	ErrFull = errors.New("signin: other people have all the sessions that there may be")
)

// Times and bounds.
const (
	LinkLife = 2 * time.Minute
	// MaxSessions is the number of sessions of an installation. Each costs a row.
	MaxSessions = 10_000
	// MaxOwn is the number of sessions of one person.
	MaxOwn = 20

	DefaultIdle = 30 * time.Minute
	DefaultLife = 12 * time.Hour
	// seenEvery is how exactly the store knows when a session was last used, and a tenth of the idle time where that is
	// less.
	seenEvery = time.Minute
)

// A Book makes, finds and ends sessions.
type Book struct {
	Store Store
	Idle  time.Duration    // 0: DefaultIdle
	Life  time.Duration    // 0: DefaultLife
	Now   func() time.Time // nil: time.Now
}

func (b *Book) now() time.Time {
	if b.Now == nil {
		return time.Now()
	}
	return b.Now()
}

func orDefault(d, usual time.Duration) time.Duration {
	if d <= 0 {
		return usual
	}
	return d
}

// newSecret returns a secret as text, and its id.
func newSecret() (string, ID) {
	var b [32]byte
	_, _ = rand.Read(b[:]) // it never fails
	return base64.RawURLEncoding.EncodeToString(b[:]), sha256.Sum256(b[:])
}

// idOf returns the id of a secret as a client sends it.
func idOf(secret string) (ID, bool) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(secret)
	if err != nil || len(b) != 32 {
		return ID{}, false
	}
	return sha256.Sum256(b), true
}

// NewLink returns the secret of a link that signs the person in and lasts LinkLife.
func (b *Book) NewLink(ctx context.Context, person string) (secret string, err error) {
	secret, id := newSecret()
	return secret, b.Store.PutSignInLink(ctx, id, person, b.now().Add(LinkLife))
}

// Spend spends a link and returns whom it signs in. The error is ErrNone for a link that was spent, is over
// or never was.
func (b *Book) Spend(ctx context.Context, secret string) (person string, err error) {
	id, ok := idOf(secret)
	if !ok {
		return "", ErrNone
	}
	return b.Store.SpendSignInLink(ctx, id, b.now())
}

// CheckLink returns ErrNone for a link that Spend would refuse. It spends nothing.
func (b *Book) CheckLink(ctx context.Context, secret string) error {
	id, ok := idOf(secret)
	if ok {
		var err error
		if ok, err = b.Store.HasSignInLink(ctx, id, b.now()); err != nil {
			return err
		}
	}
	if !ok {
		return ErrNone
	}
	return nil
}

// IsSecret reports whether s has the form of a secret.
func IsSecret(s string) bool {
	_, ok := idOf(s)
	return ok
}

// Begin begins a session, of which s has the person, the scopes, how the person signed in, the source, and in Until
// the end of the credential; zero: it has no end. It returns the secret for the cookie.
func (b *Book) Begin(ctx context.Context, s Session) (secret string, _ Session, err error) {
	now := b.now()
	secret, s.ID = newSecret()
	var name [8]byte
	_, _ = rand.Read(name[:])
	s.Name, s.Began, s.Seen = hex.EncodeToString(name[:]), now, now
	if end := now.Add(orDefault(b.Life, DefaultLife)); s.Until.IsZero() || end.Before(s.Until) {
		s.Until = end
	}
	s.Ends = now.Add(orDefault(b.Idle, DefaultIdle))
	if err := b.Store.SweepSignIns(ctx, now); err != nil {
		return "", Session{}, err
	}
	return secret, s, b.Store.PutSignIn(ctx, s, MaxOwn, MaxSessions)
}

// Find returns the session of a secret, and notes that it is used.
func (b *Book) Find(ctx context.Context, secret string) (Session, error) {
	s, err := b.Peek(ctx, secret)
	if err != nil {
		return s, err
	}
	idle := orDefault(b.Idle, DefaultIdle)
	if now := b.now(); now.Sub(s.Seen) >= min(seenEvery, idle/10) {
		s.Seen, s.Ends = now, now.Add(idle)
		// A session whose use cannot be noted ends a little earlier. That is no reason to refuse the request.
		_ = b.Store.SeeSignIn(ctx, s.ID, s.Seen, s.Ends)
	}
	return s, nil
}

// Peek is Find without a use.
func (b *Book) Peek(ctx context.Context, secret string) (Session, error) {
	id, ok := idOf(secret)
	if !ok {
		return Session{}, ErrNone
	}
	s, err := b.Store.SignIn(ctx, id)
	if err != nil {
		return Session{}, err
	}
	if b.over(&s, b.now()) {
		return Session{}, ErrNone
	}
	return s, nil
}

// over reports whether the session has ended: by its own times, and by those in force here, if they are set. They may be
// shorter than when it began.
func (b *Book) over(s *Session, now time.Time) bool {
	return !now.Before(s.Until) || !now.Before(s.Ends) || b.Life > 0 && now.Sub(s.Began) >= b.Life || b.Idle > 0 && now.Sub(s.Seen) >= b.Idle
}

// List returns the sessions that are not over.
func (b *Book) List(ctx context.Context) ([]Session, error) {
	all, err := b.Store.SignIns(ctx)
	now, live := b.now(), []Session{}
	for _, s := range all {
		if !b.over(&s, now) {
			live = append(live, s)
		}
	}
	return live, err
}

// End ends the session with this name.
func (b *Book) End(ctx context.Context, name string) error {
	ended, err := b.Store.EndSignIn(ctx, name)
	if err == nil && !ended {
		err = ErrNone
	}
	return err
}
