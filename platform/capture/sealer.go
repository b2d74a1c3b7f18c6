// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"errors"
	"strings"

	"github.com/pellucid-mcp/pellucid/platform/keyring"
)

// The errors of Sealer.Open, to be compared with errors.Is.
var (
	ErrSealed  = errors.New("capture: encrypted to its reviewers: one of their keys has to open it")
	ErrForeign = errors.New("capture: sealed with a key of another installation, or with one that was removed")
)

// ageHeader is how an age file begins. A seal of a keyring never begins so: that is the id of a key.
const ageHeader = "age-encryption.org/v1\n"

// IsAge reports whether sealed is encrypted to reviewers.
func IsAge(sealed []byte) bool {
	return strings.HasPrefix(string(sealed[:min(len(sealed), len(ageHeader))]), ageHeader)
}

// A Sealer seals documents that only a reviewer is to read: to the reviewers where they have keys,
// else with the keys of the installation. Several goroutines may use it.
type Sealer struct {
	// Reviewers returns the recipients in force; nil, or what it returns is: there are none.
	Reviewers func() *Recipients
	Keys      *keyring.Ring // nil: there are none
}

// purpose separates these seals from all others of the installation's keys.
const purpose = "pellucid capture v1"

// Seal encrypts a document of the decision that id names. It fails where there is no key at all.
func (s *Sealer) Seal(document []byte, id string) ([]byte, error) {
	if s.Reviewers != nil {
		if r := s.Reviewers(); r != nil {
			return r.Seal(document)
		}
	}
	if s.Keys == nil {
		return nil, errors.New("capture: seal: there is no key")
	}
	return s.Keys.Box(purpose).Seal(document, []byte(id)), nil
}

// Open decrypts what Seal has made for the same id. identities are those of a reviewer, or "": then what
// is encrypted to reviewers is ErrSealed. A document that is encrypted to reviewers may have been made by any
// process that has their public key: the caller compares it with what is recorded.
func (s *Sealer) Open(sealed []byte, id, identities string) ([]byte, error) {
	switch {
	case IsAge(sealed) && identities == "":
		return nil, ErrSealed
	case IsAge(sealed):
		return Open(sealed, identities)
	case s.Keys == nil:
		return nil, ErrForeign
	}
	document, err := s.Keys.Box(purpose).Open(sealed, []byte(id))
	if errors.Is(err, keyring.ErrUnknownKey) {
		return nil, ErrForeign
	}
	if err != nil {
		return nil, errOpen
	}
	return document, nil
}
