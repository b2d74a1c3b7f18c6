// SPDX-License-Identifier: Apache-2.0

package login

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/pellucid-mcp/pellucid/platform/capture"
	"github.com/pellucid-mcp/pellucid/platform/keychain"
	"github.com/pellucid-mcp/pellucid/platform/state"
)

// A Store keeps logins: each in a file of the state directory, encrypted with age. The key, an
// age identity, lies in the system's keychain, or where that is not used in a file beside them.
// So a login has no bound of size, is replaced as a whole, and is locked among processes, which no
// keychain offers.
//
// A file is "pellucid-login/1 PLACE\n", where PLACE is keychain or file, and an age file of JSON.
type Store struct {
	dir   *state.Dir
	write func(dir *state.Dir, name string, b []byte) error

	mu   sync.Mutex
	keys map[Place]string // identities that were read
}

// A Place is where the key of a login lies.
type Place string

// The places.
const (
	Keychain Place = "keychain"
	File     Place = "file"
)

const (
	subdirectory = "logins"
	keyFile      = "login.key"
	suffix       = ".login"
	lockSuffix   = ".lock"
	magic        = "pellucid-login/1 "
	maxRecord    = 256 << 10
	keychainWait = 30 * time.Second // for a user who unlocks it
)

// The errors of a Store, to be compared with errors.Is.
var (
	ErrNone   = errors.New("login: there is no such login")
	ErrUnread = errors.New("login: the stored login cannot be read")
)

// OpenStore returns the store of a state directory. It reads and makes nothing yet.
func OpenStore(dir *state.Dir) *Store {
	return &Store{dir: dir, write: (*state.Dir).Write, keys: map[Place]string{}}
}

// fileName is the name of the file of a login: it tells nothing of the server or the principal.
func fileName(server, principal string) string {
	sum := sha256.Sum256([]byte(canonical(server) + "\x00" + principal))
	return hex.EncodeToString(sum[:16])
}

// canonical is one spelling of a server's URL.
func canonical(server string) string {
	u, err := url.Parse(server)
	if err != nil {
		return server
	}
	u.Scheme, u.Host, u.Fragment = strings.ToLower(u.Scheme), strings.ToLower(u.Host), ""
	if port := map[string]string{"http": ":80", "https": ":443"}[u.Scheme]; port != "" {
		u.Host = strings.TrimSuffix(u.Host, port)
	}
	if u.Path == "" {
		u.Path = "/"
	}
	return u.String()
}

// logins is the directory of the logins; ErrNone where no login was ever stored and make is false.
func (s *Store) logins(make bool) (*state.Dir, error) {
	if !make && !s.dir.Has(subdirectory) {
		return nil, ErrNone
	}
	return s.dir.Sub(subdirectory)
}

// Get returns the login of a principal at a server; ErrNone if none is stored.
func (s *Store) Get(server, principal string) (*Login, error) {
	dir, err := s.logins(false)
	if err != nil {
		return nil, err
	}
	l, _, err := s.read(dir, fileName(server, principal)+suffix)
	if err != nil {
		return nil, err
	}
	if canonical(l.Server) != canonical(server) || l.Principal != principal { // the file was moved
		return nil, fmt.Errorf("%w: it is that of another server or principal", ErrUnread)
	}
	return l, nil
}

func (s *Store) read(dir *state.Dir, name string) (*Login, Place, error) {
	b, err := dir.Read(name, maxRecord)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, "", ErrNone
	case err != nil:
		return nil, "", err
	}
	line, sealed, found := bytes.Cut(b, []byte("\n"))
	place, ours := strings.CutPrefix(string(line), magic)
	if !found || !ours || place != string(Keychain) && place != string(File) {
		return nil, "", fmt.Errorf("%w: it is not of a form that this release knows", ErrUnread)
	}
	identity, _, err := s.key(Place(place), false)
	if err != nil {
		return nil, Place(place), err
	}
	plain, err := capture.Open(sealed, identity)
	if err != nil {
		return nil, Place(place), fmt.Errorf("%w: its key does not open it", ErrUnread)
	}
	l := new(Login)
	if err := json.Unmarshal(plain, l); err != nil {
		return nil, Place(place), fmt.Errorf("%w: it is damaged", ErrUnread)
	}
	return l, Place(place), nil
}

// Put stores a login, in the place of one for the same server and principal.
func (s *Store) Put(l *Login, place Place) error {
	dir, err := s.logins(true)
	if err != nil {
		return err
	}
	return s.put(dir, l, place)
}

func (s *Store) put(dir *state.Dir, l *Login, place Place) error {
	_, recipient, err := s.key(place, true)
	if err != nil {
		return err
	}
	to, err := capture.ParseRecipients([]string{recipient})
	if err != nil {
		return failed("the key of the logins is damaged", nil)
	}
	plain, err := json.Marshal(l)
	if err == nil {
		plain, err = to.Seal(plain)
	}
	if err != nil {
		return failed("the login cannot be encrypted", nil)
	}
	return s.write(dir, fileName(l.Server, l.Principal)+suffix, append([]byte(magic+string(place)+"\n"), plain...))
}

// Remove removes a login. One whose key is lost is removed too.
func (s *Store) Remove(server, principal string) error {
	dir, err := s.logins(false)
	if err != nil {
		return err
	}
	held, err := lock(dir, fileName(server, principal))
	if err != nil {
		return err
	}
	defer held.Close()
	return dir.Remove(fileName(server, principal) + suffix)
}

// An Entry is a login of a list.
type Entry struct {
	Login *Login // nil: it cannot be read
	Place Place
	Err   error

	file string
}

// List returns every login, in the order of their servers. Those that cannot be read come last.
func (s *Store) List() ([]Entry, error) {
	dir, err := s.logins(false)
	if errors.Is(err, ErrNone) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	names, err := dir.Names()
	if err != nil {
		return nil, err
	}
	var all []Entry
	for _, name := range names {
		if !strings.HasSuffix(name, suffix) {
			continue
		}
		l, place, err := s.read(dir, name)
		if errors.Is(err, ErrNone) {
			continue // removed meanwhile
		}
		all = append(all, Entry{Login: l, Place: place, Err: err, file: name})
	}
	slices.SortStableFunc(all, func(a, b Entry) int {
		switch {
		case a.Login == nil || b.Login == nil:
			return b2i(a.Login == nil) - b2i(b.Login == nil)
		case a.Login.Server != b.Login.Server:
			return strings.Compare(a.Login.Server, b.Login.Server)
		}
		return strings.Compare(a.Login.Principal, b.Login.Principal)
	})
	return all, nil
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// ForgetPrincipal removes every login of a principal and returns their number.
func (s *Store) ForgetPrincipal(principal string) (n int, err error) {
	all, err := s.List()
	if err != nil {
		return 0, err
	}
	for _, e := range all {
		if e.Login == nil {
			return n, fmt.Errorf("login: whose login this is cannot be read: %w", e.Err)
		}
		if e.Login.Principal != principal {
			continue
		}
		if err := s.Remove(e.Login.Server, principal); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// key returns the age identity at a place and its recipient. make says to make one where none exists.
func (s *Store) key(place Place, make bool) (identity, recipient string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if identity = s.keys[place]; identity == "" {
		if make { // two processes must not make two keys
			held, err := lock(s.dir, keyFile)
			if err != nil {
				return "", "", err
			}
			defer held.Close()
		}
		if identity, err = s.readKey(place, make); err != nil {
			return "", "", err
		}
	}
	if recipient, err = capture.RecipientOf(identity); err != nil {
		return "", "", failed("the key of the logins is damaged", nil)
	}
	s.keys[place] = identity
	return identity, recipient, nil
}

func (s *Store) readKey(place Place, make bool) (string, error) {
	var identity string
	var err error
	if place == Keychain {
		identity, err = keychain.Get(s.account(), keychainWait)
	} else {
		var b []byte
		b, err = s.dir.Read(keyFile, 1024)
		identity = strings.TrimSpace(string(b))
	}
	missing := errors.Is(err, keychain.ErrNotFound) || errors.Is(err, fs.ErrNotExist)
	switch {
	case err == nil:
		return identity, nil
	case missing && !make:
		return "", fmt.Errorf("%w: its key is gone: log in again", ErrUnread)
	case !missing:
		return "", fmt.Errorf("login: the key of the logins: %w", err)
	}
	if identity, err = capture.NewIdentity(); err != nil {
		return "", err
	}
	if place == Keychain {
		err = keychain.Set(s.account(), identity, keychainWait)
	} else {
		err = s.dir.Write(keyFile, []byte(identity+"\n"))
	}
	if err != nil {
		return "", fmt.Errorf("login: the key of the logins: %w", err)
	}
	return identity, nil
}

// account names this installation in the keychain.
func (s *Store) account() string {
	sum := sha256.Sum256([]byte(s.dir.Path()))
	return "logins-" + hex.EncodeToString(sum[:8])
}

// Update reads a login while no other process may change it, and stores what change makes of it. An error
// of change stores nothing; change returns false where there is nothing to store.
func (s *Store) Update(server, principal string, change func(*Login) (bool, error)) (*Login, error) {
	dir, err := s.logins(false)
	if err != nil {
		return nil, err
	}
	held, err := lock(dir, fileName(server, principal))
	if err != nil {
		return nil, err
	}
	defer held.Close()
	l, place, err := s.read(dir, fileName(server, principal)+suffix)
	if err != nil {
		return nil, err
	}
	store, err := change(l)
	if err != nil || !store {
		return l, err
	}
	return l, s.put(dir, l, place)
}

// lockWait is longer than another process renews a login, which is one request and two of its timeouts.
const lockWait = 45 * time.Second

// lock waits for the lock of a name, but not for ever: a process that was stopped may hold it.
func lock(dir *state.Dir, name string) (io.Closer, error) {
	type result struct {
		held io.Closer
		err  error
	}
	done := make(chan result, 1)
	go func() {
		held, err := dir.Lock(name + lockSuffix)
		done <- result{held, err}
	}()
	late := time.NewTimer(lockWait)
	defer late.Stop()
	select {
	case r := <-done:
		return r.held, r.err
	case <-late.C:
		go func() {
			if r := <-done; r.held != nil {
				r.held.Close()
			}
		}()
		return nil, failed("another process holds the login for too long", nil)
	}
}

// Prepare makes sure that a login can be stored whose key lies at that place, before the user is asked for one.
func (s *Store) Prepare(place Place) error {
	var err error
	if place == File && !s.dir.Has(keyFile) { // it is made with the first login
		const probe = "login.probe"
		if err = s.dir.Write(probe, nil); err == nil {
			err = s.dir.Remove(probe)
		}
	} else {
		_, _, err = s.key(place, true)
	}
	if err == nil {
		_, err = s.logins(true)
	}
	return err
}
