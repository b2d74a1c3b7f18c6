// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	rings "github.com/pellucid-mcp/pellucid/platform/keyring"
	"github.com/pellucid-mcp/pellucid/record/conversation"
	"github.com/pellucid-mcp/pellucid/storage"
)

// TestConversations walks kept conversations through all that can become of them, on each engine.
func TestConversations(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		now := day
		s := open(t, where, storage.Options{})
		o := conversation.Options{Keys: ring(t, 1), For: time.Hour, Total: 10 * conversation.LeastSize, Now: func() time.Time { return now }}
		with := func(change func(*conversation.Options)) *conversation.Conversations {
			o := o
			change(&o)
			return conversation.New(s, o)
		}
		c, other := with(func(*conversation.Options) {}), with(func(*conversation.Options) {})
		ann := conversation.Owner{Principal: "ann"}
		keep := func(of conversation.Owner, id, items string, own bool) {
			t.Helper()
			if err := c.Keep(ctx, of, id, conversation.Turn{Items: []byte(items), Own: own}); err != nil {
				t.Fatal(err)
			}
		}
		find := func(of conversation.Owner, id, items string) {
			t.Helper()
			got, err := other.Find(ctx, of, id)
			if items == "" && !errors.Is(err, conversation.ErrNotFound) || items != "" && string(got.Items) != items {
				t.Errorf("%+v %s: %q, %v", of, id, got.Items, err)
			}
		}
		keep(ann, "r1", `["one"]`, false)
		keep(ann, "r2", `["two"]`, true)
		find(ann, "r1", `["one"]`)
		if got, err := other.Find(ctx, ann, "r2"); err != nil || !got.Own {
			t.Errorf("%+v, %v", got, err)
		}
		// No other owner finds it, however the parts are put together.
		for _, of := range []conversation.Owner{{}, {Principal: "bob"}, {Principal: "ann", Credential: "k"}, {Credential: "ann"}, {Principal: "an"}} {
			find(of, "r1", "")
			find(of, "nr1", "")
		}
		keep(conversation.Owner{Credential: "k"}, "r1", `["k's"]`, false)
		find(conversation.Owner{Credential: "k"}, "r1", `["k's"]`)
		find(ann, "r1", `["one"]`)
		keep(ann, "r1", `["one again"]`, false)
		find(ann, "r1", `["one again"]`)
		// Another installation opens nothing, and the text stands in no row.
		strange := with(func(o *conversation.Options) { o.Keys = ring(t, 2) })
		if _, err := strange.Find(ctx, ann, "r1"); !errors.Is(err, conversation.ErrNotFound) {
			t.Errorf("another key: %v", err)
		}
		// Once a new key has taken over, what the previous one has sealed is still found.
		rotated := with(func(o *conversation.Options) { o.Keys = ring(t, 2, 1) })
		if got, err := rotated.Find(ctx, ann, "r1"); err != nil || string(got.Items) != `["one again"]` {
			t.Errorf("a new key: %q, %v", got.Items, err)
		}
		if err := c.Keep(ctx, ann, "long", conversation.Turn{Items: make([]byte, conversation.MaxTurn+1)}); !errors.Is(err, conversation.ErrTooLong) {
			t.Errorf("too long: %v", err)
		}
		if err := c.Drop(ctx, ann, "r2"); err != nil {
			t.Fatal(err)
		}
		find(ann, "r2", "")
		now = now.Add(time.Hour)
		find(ann, "r1", "")

		// One who keeps very many loses the oldest of them, and others lose nothing.
		keep(conversation.Owner{Principal: "bob"}, "b", `["bob's"]`, false)
		for i := range 30 {
			now = now.Add(2 * time.Minute / 30)
			keep(ann, fmt.Sprint("a", i), `["ann's"]`, false)
		}
		now = now.Add(time.Minute)
		keep(ann, "last", `["ann's last"]`, false) // which looks for what has to go
		find(conversation.Owner{Principal: "bob"}, "b", `["bob's"]`)
		find(ann, "a0", "")
		find(ann, "a21", "")
		find(ann, "a29", `["ann's"]`)
		find(ann, "last", `["ann's last"]`)
		if f, err := s.Forget(ctx, "ann", nil); err != nil || f.Conversations != 9 {
			t.Errorf("%v, %+v", err, f)
		}
		find(ann, "last", "")
		find(conversation.Owner{Principal: "bob"}, "b", `["bob's"]`)
	})
}

// TestConversationsSealed: a row holds neither the text nor the id nor the credential, and one
// that was changed, or was moved to another key, is refused.
func TestConversationsSealed(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		s := open(t, where, storage.Options{})
		var rows []conversation.Row
		c := conversation.New(spy{s, &rows}, conversation.Options{Keys: ring(t, 1)})
		of := conversation.Owner{Principal: "ann", Credential: "sk-credential"}
		for _, id := range []string{"resp_1", "resp_2"} {
			if err := c.Keep(ctx, of, id, conversation.Turn{Items: []byte(`["the secret plan"]`)}); err != nil {
				t.Fatal(err)
			}
		}
		for _, r := range rows {
			all := fmt.Sprintf("%s %s %s", r.Key[:], r.Sealed, r.Principal[:])
			for _, s := range []string{"secret plan", "resp_", "sk-credential", "ann"} {
				if strings.Contains(all, s) {
					t.Errorf("%q stands in a row", s)
				}
			}
		}
		moved, changed := rows[0], rows[1]
		moved.Key = rows[1].Key
		changed.Sealed = bytes.Clone(changed.Sealed)
		changed.Sealed[20] ^= 1
		for _, r := range []conversation.Row{moved, changed} {
			if err := s.PutConversation(ctx, r); err != nil {
				t.Fatal(err)
			}
			if got, err := c.Find(ctx, of, "resp_2"); err == nil || errors.Is(err, conversation.ErrNotFound) {
				t.Errorf("%s, %v", got.Items, err)
			}
		}
	})
}

// ring is a ring of keys, each made of one number.
func ring(t testing.TB, numbers ...byte) *rings.Ring {
	t.Helper()
	var keys []rings.Key
	for _, n := range numbers {
		k, err := rings.NewKey(bytes.Repeat([]byte{n}, rings.KeySize))
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, k)
	}
	r, err := rings.New(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// spy sees what is stored.
type spy struct {
	conversation.Store
	rows *[]conversation.Row
}

func (s spy) PutConversation(ctx context.Context, r conversation.Row) error {
	*s.rows = append(*s.rows, r)
	return s.Store.PutConversation(ctx, r)
}
