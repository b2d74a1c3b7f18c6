// SPDX-License-Identifier: Apache-2.0

package install

import (
	"os"
	"path/filepath"
	"testing"
)

// TestConfigFile: a link that leads nowhere is a configuration that cannot be read, and not none.
func TestConfigFile(t *testing.T) {
	for name, x := range map[string]struct {
		link  string // below the folder of configurations
		there bool
	}{"none": {"", false}, "the file": {"pellucid/pellucid.yaml", true}, "its folder": {"pellucid", true}, "another": {"other", false}} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			t.Setenv("HOME", home)
			t.Setenv("USERPROFILE", home)
			t.Setenv("XDG_CONFIG_HOME", "")
			t.Setenv("AppData", home)
			folder, err := os.UserConfigDir()
			if err != nil {
				t.Fatal(err)
			}
			if x.link != "" {
				at := filepath.Join(folder, filepath.FromSlash(x.link))
				if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(filepath.Join(home, "gone"), at); err != nil {
					t.Skip(err)
				}
				if _, err := os.Lstat(at); err != nil {
					t.Skip("this system does not see a link that leads nowhere")
				}
			}
			if got := ConfigFile(); (got != "") != x.there {
				t.Errorf("%q", got)
			}
		})
	}
}
