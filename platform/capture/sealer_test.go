// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"bytes"
	"errors"
	"testing"

	"github.com/pellucid-mcp/pellucid/platform/keyring"
)

func ring(t testing.TB, fill byte) *keyring.Ring {
	t.Helper()
	k, err := keyring.NewKey(bytes.Repeat([]byte{fill}, keyring.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	r, err := keyring.New(k)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestSealer: reviewers come before the keys of the installation, a seal opens for its own decision
// only, and each reason for which it does not open has its own error.
func TestSealer(t *testing.T) {
	ann, eve := identity(t), identity(t)
	to, err := ParseRecipients([]string{ann.Recipient().String()})
	if err != nil {
		t.Fatal(err)
	}
	byReviewer := &Sealer{Reviewers: func() *Recipients { return to }, Keys: ring(t, 1)}
	byKey := &Sealer{Reviewers: func() *Recipients { return nil }, Keys: ring(t, 1)}
	const document = `{"arguments":"secret"}`
	seal := func(s *Sealer) []byte {
		sealed, err := s.Seal([]byte(document), "a")
		if err != nil || bytes.Contains(sealed, []byte("secret")) {
			t.Fatalf("%q, %v", sealed, err)
		}
		return sealed
	}
	aged, boxed := seal(byReviewer), seal(byKey)
	if !IsAge(aged) || IsAge(boxed) || IsAge(nil) {
		t.Error("to whom it is sealed")
	}
	if _, err := new(Sealer).Seal(nil, ""); err == nil {
		t.Error("sealed without a key")
	}
	changed := bytes.Clone(boxed)
	changed[len(changed)-1] ^= 1
	for name, tt := range map[string]struct {
		s       *Sealer
		sealed  []byte
		id, key string
		want    error
	}{
		"a reviewer":           {byKey, aged, "a", ann.String(), nil},
		"without an identity":  {byReviewer, aged, "a", "", ErrSealed},
		"another identity":     {byReviewer, aged, "a", eve.String(), errOpen},
		"no identity":          {byReviewer, aged, "a", "x", ErrIdentity},
		"the installation":     {byKey, boxed, "a", "", nil},
		"of another decision":  {byKey, boxed, "b", "", errOpen},
		"changed":              {byKey, changed, "a", "", errOpen},
		"another installation": {&Sealer{Keys: ring(t, 2)}, boxed, "a", "", ErrForeign},
		"no keys":              {new(Sealer), boxed, "a", "", ErrForeign},
		"nothing":              {byKey, nil, "a", "", errOpen},
	} {
		got, err := tt.s.Open(tt.sealed, tt.id, tt.key)
		if !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) || err == nil && string(got) != document {
			t.Errorf("%s: %q, %v, want %v", name, got, err, tt.want)
		}
	}
}
