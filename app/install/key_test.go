// SPDX-License-Identifier: Apache-2.0

package install

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/local"
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
	other := strings.Repeat("11", 32)
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(digits+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	own, err := local.Keys(dir)
	if err != nil || len(own) != 1 {
		t.Fatalf("%v, %v", own, err)
	}
	for _, tt := range []struct {
		ref, value string
		ok         bool
	}{
		{"env:GIVEN", digits, true}, {"file:" + file, "", true}, {"env:GIVEN", digits + "  " + other + " ", true},
		{"env:GIVEN", digits + " " + other[2:], false}, {"env:GIVEN", " ", false},
		{"env:GIVEN", digits[2:], false}, {"env:GIVEN", digits[1:] + "x", false}, {"env:NOT_SET", "", false},
		{"file:" + file + "x", "", false}, {digits, "", false},
	} {
		t.Setenv("GIVEN", tt.value)
		t.Setenv(local.KeyVar, tt.ref)
		keys, err := local.Keys(dir)
		switch {
		case tt.ok && (err != nil || fmt.Sprintf("%x", keys[0].Secret()) != digits || len(keys) != len(strings.Fields(cmp.Or(tt.value, digits)))):
			t.Errorf("%s: %v, %v", tt.ref, keys, err)
		case !tt.ok && (err == nil || !isConfig(err) || strings.Contains(err.Error(), digits[4:20])):
			t.Errorf("%s: %v", tt.ref, err)
		}
	}
}
