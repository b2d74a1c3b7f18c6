// SPDX-License-Identifier: Apache-2.0

package sequence

import (
	"crypto/ed25519"
	"errors"
	"testing"

	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/ledger"
)

func TestKeyring(t *testing.T) {
	dir, err := state.OpenAt(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := &Keyring{Dir: dir}
	must := func(s *ledger.Signer, err error) *ledger.Signer {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := must(r.First("log.example/a"))
	second := must(r.Next("log.example/a", first.Key().ID()))
	if first.Key().ID() == second.Key().ID() {
		t.Error("the next key is the first")
	}
	again := &Keyring{Dir: dir}
	for _, want := range []*ledger.Signer{first, second} {
		if got := must(again.Find("log.example/a", want.Key().ID())); got.Key().String() != want.Key().String() {
			t.Errorf("found %s, want %s", got.Key(), want.Key())
		}
	}
	if other := must(r.First("log.example/b")); other.Key().KeyHash() == first.Key().KeyHash() {
		t.Error("two logs have one key")
	}
	if _, err := r.Find("log.example/b", first.Key().ID()); !errors.Is(err, ErrNoKey) {
		t.Errorf("the key of another log: %v", err)
	}
	given := must(ledger.NewSigner("log.example/a", ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))))
	only := &Keyring{Given: given}
	if got := must(only.First("log.example/a")); got != given {
		t.Error("a key that was given is not used")
	}
	if _, err := only.Find("log.example/a", first.Key().ID()); !errors.Is(err, ErrNoKey) {
		t.Errorf("a key that was not given: %v", err)
	}
	old, current := make([]byte, 32), []byte("another key of the installation.")
	before := must((&Keyring{Shared: [][]byte{old}}).First("log.example/a"))
	team := &Keyring{Dir: dir, Shared: [][]byte{current, old}}
	now := must(team.First("log.example/a"))
	if now.Key().ID() == before.Key().ID() || now.Key().ID() == first.Key().ID() {
		t.Error("two secrets have one key")
	}
	for _, want := range []*ledger.Signer{now, before, first} { // its own, that before, that of the state directory
		if got := must(team.Find("log.example/a", want.Key().ID())); got.Key().String() != want.Key().String() {
			t.Errorf("found %s, want %s", got.Key(), want.Key())
		}
	}
	if got := must(team.Next("log.example/a", first.Key().ID())); got.Key().ID() != now.Key().ID() {
		t.Error("the key that replicas share does not take over")
	}
	if _, err := team.Next("log.example/a", now.Key().ID()); !errors.Is(err, errSharedNext) {
		t.Errorf("a key that one machine alone has takes over: %v", err)
	}
}
