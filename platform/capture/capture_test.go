// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
)

func identity(t testing.TB) *age.X25519Identity {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestSeal(t *testing.T) {
	ann, bob, eve := identity(t), identity(t), identity(t)
	r, err := ParseRecipients([]string{ann.Recipient().String(), bob.Recipient().String()})
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{0, 1, 64<<10 - 1, 64 << 10, 64<<10 + 1, 1 << 20} {
		body := bytes.Repeat([]byte("secret"), size/6+1)[:size]
		sealed, err := r.Seal(body)
		if err != nil {
			t.Fatal(err)
		}
		if size > 0 && bytes.Contains(sealed, []byte("secretsecret")) || !strings.HasPrefix(string(sealed), "age-encryption.org/v1\n") {
			t.Errorf("%d bytes are not sealed", size)
		}
		for _, id := range []*age.X25519Identity{ann, bob} {
			got, err := Open(sealed, "# reviewer\n"+id.String()+"\n")
			if err != nil || !bytes.Equal(got, body) {
				t.Errorf("%d bytes: %v", size, err)
			}
		}
		if _, err := Open(sealed, eve.String()); !errors.Is(err, errOpen) {
			t.Errorf("somebody else's key: %v", err)
		}
		for _, at := range []int{0, len(sealed) / 2, len(sealed) - 1} {
			bad := bytes.Clone(sealed)
			bad[at] ^= 1
			if _, err := Open(bad, ann.String()); !errors.Is(err, errOpen) {
				t.Errorf("%d bytes with bit %d flipped: %v", size, at, err)
			}
		}
		if _, err := Open(sealed[:len(sealed)-1], ann.String()); !errors.Is(err, errOpen) {
			t.Errorf("%d bytes, cut: %v", size, err)
		}
	}
}

func TestRefused(t *testing.T) {
	good := identity(t)
	for name, list := range map[string][]string{
		"none":       nil,
		"too many":   strings.Split(strings.Repeat(good.Recipient().String()+" ", MaxRecipients+1), " ")[:MaxRecipients+1],
		"private":    {good.String()},
		"changed":    {good.Recipient().String()[:61] + "q"},
		"ssh":        {"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAA"},
		"line feed":  {good.Recipient().String() + "\n"},
		"one is bad": {good.Recipient().String(), ""},
	} {
		if _, err := ParseRecipients(list); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for _, id := range []string{"", "AGE-SECRET-KEY-1QQ", good.Recipient().String()} {
		if _, err := Open(nil, id); !errors.Is(err, ErrIdentity) || strings.Contains(err.Error(), "QQ") {
			t.Errorf("identity %q: %v", id, err)
		}
	}
}

func FuzzOpen(f *testing.F) {
	id := identity(f)
	r, err := ParseRecipients([]string{id.Recipient().String()})
	if err != nil {
		f.Fatal(err)
	}
	sealed, _ := r.Seal([]byte("{}"))
	f.Add(sealed, id.String())
	f.Add([]byte("age-encryption.org/v1\n"), "")
	f.Fuzz(func(t *testing.T, sealed []byte, identities string) {
		if b, err := Open(sealed, identities); err != nil && b != nil {
			t.Error("an error and a body")
		}
	})
}

// TestReadIdentities: a file is read up to a bound; the rest of a longer one is left.
func TestReadIdentities(t *testing.T) {
	name := filepath.Join(t.TempDir(), "key")
	for _, n := range []int{0, 5, maxIdentities, maxIdentities + 1} {
		if err := os.WriteFile(name, bytes.Repeat([]byte("k"), n), 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := ReadIdentities(name); err != nil || len(s) != min(n, maxIdentities) {
			t.Errorf("%d bytes of %d: %v", len(s), n, err)
		}
	}
	for _, name := range []string{name + "x", filepath.Dir(name)} {
		if s, err := ReadIdentities(name); err == nil || s != "" {
			t.Errorf("%q, %v", s, err)
		}
	}
}
