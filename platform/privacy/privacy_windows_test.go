// SPDX-License-Identifier: Apache-2.0

package privacy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/windows"
)

func expose(t *testing.T, path string) {
	t.Helper()
	user, err := userSID()
	if err != nil {
		t.Fatal(err)
	}
	list, err := windows.SecurityDescriptorFromString("D:P(A;;FA;;;" + user + ")(A;;FR;;;WD)")
	if err != nil {
		t.Fatal(err)
	}
	if err := setAccess(path, list); err != nil {
		t.Fatal(err)
	}
}

// TestExposure: who has access is named, with a command that takes it away. A copy has the access list of its original.
func TestExposure(t *testing.T) {
	dir := t.TempDir()
	open, closed := filepath.Join(dir, "open"), filepath.Join(dir, "zo\u00eb closed")
	for _, name := range []string{open, closed} {
		if err := WriteFile(name, nil); err != nil {
			t.Fatal(err)
		}
	}
	expose(t, open)
	how, err := Exposure(open)
	if err != nil || !strings.HasPrefix(how, "is open to ") || !strings.Contains(how, `: run icacls "`+open+`" /inheritance:r /remove:g "*S-1-1-0" /grant:r "*S-1-5-21-`) {
		t.Errorf("%q, %v", how, err)
	}
	if err := CopyAccess(open, closed); err != nil {
		t.Fatal(err)
	}
	if how, _ := Exposure(closed); how == "" {
		t.Error("the copy of an access list admits only the user")
	}
	if err := Restrict(open); err != nil {
		t.Fatal(err)
	}
	if how, err := Exposure(open); how != "" || err != nil {
		t.Errorf("restricted: it %s, %v", how, err)
	}
	if f, err := os.Open(open); err != nil {
		t.Error(err)
	} else {
		f.Close()
	}
}
