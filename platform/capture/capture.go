// SPDX-License-Identifier: Apache-2.0

// Package capture encrypts what is held for review, so that a reviewer's key alone reads it: age, X25519.
package capture

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"filippo.io/age"
)

// The errors of this package, to be compared with errors.Is.
var (
	errRecipient = errors.New("capture: want a recipient of age, age1 and 58 letters and digits")
	ErrIdentity  = errors.New("capture: want an identity of age, AGE-SECRET-KEY-1…")
	errOpen      = errors.New("capture: this identity does not open it, or it was changed")
)

// MaxRecipients bounds a list of them: each costs a header.
const MaxRecipients = 16

// Recipients are who may read what is sealed. The zero value is nobody.
type Recipients struct {
	names []string
	keys  []age.Recipient
}

// ParseRecipients reads the public keys of reviewers, "age1…".
func ParseRecipients(names []string) (*Recipients, error) {
	if len(names) == 0 || len(names) > MaxRecipients {
		return nil, fmt.Errorf("capture: want 1 to %d recipients", MaxRecipients)
	}
	r := new(Recipients)
	for _, name := range names {
		k, err := age.ParseX25519Recipient(name)
		if err != nil {
			return nil, errRecipient
		}
		r.names, r.keys = append(r.names, name), append(r.keys, k)
	}
	return r, nil
}

// Names are the public keys, as they were given.
func (r *Recipients) Names() []string { return append([]string(nil), r.names...) }

// Seal encrypts body as an age file, which has 184 bytes more with one recipient.
func (r *Recipients) Seal(body []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := age.Encrypt(&b, r.keys...)
	if err == nil {
		_, err = w.Write(body)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("capture: seal: %w", err)
	}
	return b.Bytes(), nil
}

// maxIdentities is what ReadIdentities reads of a file, in bytes.
const maxIdentities = 64 << 10

// ReadIdentities reads a file of identities for Open.
func ReadIdentities(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxIdentities))
	return string(b), err
}

// Open decrypts what was sealed with one of the identities, a file as age-keygen
// writes it. The error is ErrIdentity or errOpen: that of age may quote the file.
func Open(sealed []byte, identities string) ([]byte, error) {
	ids, err := age.ParseIdentities(strings.NewReader(identities))
	if err != nil {
		return nil, ErrIdentity
	}
	r, err := age.Decrypt(bytes.NewReader(sealed), ids...)
	if err != nil {
		return nil, errOpen
	}
	body, err := io.ReadAll(r)
	if err != nil {
		return nil, errOpen
	}
	return body, nil
}

// NewIdentity makes an identity for Open.
func NewIdentity() (string, error) {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		return "", fmt.Errorf("capture: new identity: %w", err)
	}
	return id.String(), nil
}

// RecipientOf returns who can read what an identity opens, for ParseRecipients.
func RecipientOf(identity string) (string, error) {
	id, err := age.ParseX25519Identity(identity)
	if err != nil {
		return "", ErrIdentity
	}
	return id.Recipient().String(), nil
}
