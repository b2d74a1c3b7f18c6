// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/webhook"
	"github.com/pellucid-mcp/pellucid/storage"
)

// TestWebhooks: a receiver that does not get its messages is a warning.
func TestWebhooks(t *testing.T) {
	machine(t)
	t.Setenv("HOOK", "whsec_AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=")
	db := filepath.Join(t.TempDir(), "a.db")
	s, err := storage.Open(t.Context(), db, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	secret, err := webhook.ParseSecret("whsec_AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=")
	if err != nil {
		t.Fatal(err)
	}
	var all []*webhook.Receiver
	for _, name := range []string{"chat", "gone"} {
		r, err := webhook.NewReceiver(webhook.Options{Name: name, URL: "http://127.0.0.1:1/", Secrets: []webhook.Secret{secret}})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	s.Tell(&webhook.Sender{Store: s, Receivers: func() []*webhook.Receiver { return all }, Log: slog.New(slog.DiscardHandler)})
	if err := hold.New(s, hold.Options{}).Hold(t.Context(), hold.Item{ID: hold.NewID(), Server: "s", Rule: "finding"}); err != nil {
		t.Fatal(err)
	}
	o := Options{Config: configuration(t, "127.0.0.1:0", "webhooks: {chat: {url: 'http://127.0.0.1:1/', secrets: ['env:HOOK']}}\n"), DB: install.Database(db)}
	text, r, _ := examine(t, o)
	holds(t, "on the way", text, r, true, "ok       webhooks   \"chat\": 1 message on the way\n", "warning  webhooks   \"gone\": 1 message for it, which the configuration does not name")
	m, err := s.NextMessage(t.Context(), "chat", time.Now())
	if err != nil || m == nil {
		t.Fatal(err)
	}
	m.Failure = "status-500"
	if err := s.MessageFailed(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	text, r, _ = examine(t, o)
	q := hold.New(s, hold.Options{})
	for range 999 { // one waits already
		if err := q.Hold(t.Context(), hold.Item{ID: hold.NewID(), Server: "s", Rule: "finding"}); err != nil {
			t.Fatal(err)
		}
	}
	full, _, _ := examine(t, o)
	if want := "warning  queue      the queue is full for the server \"s\", with 1000 items of 0 bytes"; !strings.Contains(full, want) {
		t.Errorf("%s\nwant %s", full, want)
	}
	holds(t, "failing", text, r, true, "warning  webhooks   \"chat\": 1 message not delivered, 0 given up: pellucid webhooks says why\n")
}
