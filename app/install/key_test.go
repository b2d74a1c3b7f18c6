// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/platform/state"
)

func isConfig(err error) bool {
	var coded *exit.Error
	return errors.As(err, &coded) && coded.Code == exit.Config
}

// TestInstallKey: a key that is given is the key, and one that is none is refused
// without a word of it.
func TestInstallKey(t *testing.T) {
	t.Setenv("PELLUCID_STATE", t.TempDir())
	dir, err := state.Open()
	if err != nil {
		t.Fatal(err)
	}
	const digits = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(digits+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	own, err := Key(dir)
	if err != nil || len(own) != state.KeySize {
		t.Fatalf("%x, %v", own, err)
	}
	for _, tt := range []struct {
		ref, value string
		ok         bool
	}{
		{"env:GIVEN", digits, true}, {"file:" + file, "", true},
		{"env:GIVEN", digits[2:], false}, {"env:GIVEN", digits[1:] + "x", false}, {"env:NOT_SET", "", false},
		{"file:" + file + "x", "", false}, {digits, "", false},
	} {
		t.Setenv("GIVEN", tt.value)
		t.Setenv(KeyVar, tt.ref)
		key, err := Key(dir)
		switch {
		case tt.ok && (err != nil || fmt.Sprintf("%x", key) != digits):
			t.Errorf("%s: %x, %v", tt.ref, key, err)
		case !tt.ok && (err == nil || !isConfig(err) || strings.Contains(err.Error(), digits[4:20])):
			t.Errorf("%s: %v", tt.ref, err)
		}
	}
}
