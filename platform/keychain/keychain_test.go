// SPDX-License-Identifier: Apache-2.0

package keychain

import (
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/programtest"
)

const wait = 20 * time.Second

// TestAbsent: a session without a bus has no keychain, and none is started for it.
func TestAbsent(t *testing.T) {
	if Here() && os.Getenv("DBUS_SESSION_BUS_ADDRESS") == "" && os.Getenv("XDG_RUNTIME_DIR") == "" {
		t.Skip("this system always has a keychain")
	}
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "")
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	if _, err := Get("a", wait); !errors.Is(err, ErrAbsent) {
		t.Error(err)
	}
	if err := Set("a", "b", wait); !errors.Is(err, ErrAbsent) {
		t.Error(err)
	}
}

// TestSecretService: a secret is kept and replaced in the keyring of GNOME, which runs for this test alone.
func TestSecretService(t *testing.T) {
	if os.Getenv("PELLUCID_TEST_KEYRING") == "" {
		for _, name := range []string{"dbus-run-session", "gnome-keyring-daemon"} {
			programtest.Find(t, name)
		}
		home := t.TempDir()
		cmd := exec.CommandContext(t.Context(), "dbus-run-session", "--", "sh", "-c",
			`printf pass | gnome-keyring-daemon --unlock --components=secrets >/dev/null 2>&1; exec "$0" -test.run '^TestSecretService$' -test.v`, os.Args[0])
		cmd.Env = append(os.Environ(), "PELLUCID_TEST_KEYRING=1", "HOME="+home, "XDG_RUNTIME_DIR="+home, "XDG_DATA_HOME="+home, "DBUS_SESSION_BUS_ADDRESS=")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	if _, err := Get("a", wait); !errors.Is(err, ErrNotFound) {
		t.Fatalf("before: %v", err)
	}
	for _, secret := range []string{"first", "second"} {
		if err := Set("a", secret, wait); err != nil {
			t.Fatal(err)
		}
		if got, err := Get("a", wait); err != nil || got != secret {
			t.Errorf("%q %v", got, err)
		}
	}
}
