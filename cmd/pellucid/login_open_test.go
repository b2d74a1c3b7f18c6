// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/app"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/platform/login"
	"github.com/pellucid-mcp/pellucid/platform/waittest"
)

// TestLoginOpensFile: the program that opens the browser gets the path of a file that only this user can read, and no part of
// the address, which has the state and the challenge of the login.
func TestLoginOpensFile(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only on Linux is the program that opens the browser looked up in PATH")
	}
	bin, seen := t.TempDir(), filepath.Join(t.TempDir(), "seen")
	script := "#!/bin/sh\nprintf '%s\\n' \"$#\" \"$@\" > " + seen + ".new && mv " + seen + ".new " + seen + "\n"
	if err := os.WriteFile(filepath.Join(bin, "xdg-open"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("PELLUCID_STATE", t.TempDir())
	dir, err := local.OpenState()
	if err != nil {
		t.Fatal(err)
	}
	page := app.OpenPage{Dir: dir, Life: time.Minute}
	var said bytes.Buffer
	address := "https://login.example/authorize?state=s3cret&code_challenge=ch4llenge&client_id=pellucid"
	(&loginCmd{}).show(t.Context(), &env{Stderr: &said}, &page, "https://mcp.example/mcp", login.Prompt{Issuer: "https://login.example", URL: address})
	var args []string
	waittest.Until(t, "the program has started", func() bool {
		b, err := os.ReadFile(seen)
		args = strings.Split(strings.TrimSpace(string(b)), "\n")
		return err == nil
	})
	if len(args) != 2 || args[0] != "1" || strings.Contains(strings.Join(args, " "), "s3cret") || filepath.Dir(args[1]) != dir.Path() {
		t.Fatalf("the program got %q", args)
	}
	info, err := os.Stat(args[1])
	if err != nil || info.Mode() != 0o600 {
		t.Fatalf("the file: %v, %v", info, err)
	}
	text, err := os.ReadFile(args[1])
	if want := strings.ReplaceAll(address, "&", "&amp;"); err != nil || strings.Count(string(text), want) != 2 {
		t.Errorf("the file says %s, %v", text, err)
	}
	page.Remove()
	if _, err := os.Stat(args[1]); !os.IsNotExist(err) {
		t.Errorf("the file stays: %v", err)
	}
	if !strings.Contains(said.String(), address) {
		t.Errorf("the person does not see the address: %s", said.String())
	}
}
