// SPDX-License-Identifier: Apache-2.0

package child

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/windows"
)

// argumentsRole makes the test binary write its arguments.
const argumentsRole = "CHILD_ARGUMENTS"

func init() {
	if os.Getenv(argumentsRole) != "" {
		json.NewEncoder(os.Stdout).Encode(os.Args[1:])
		os.Exit(0)
	}
}

// losesPercent reports whether this is Wine, which looks for variables in what it has put in the place of %*.
func losesPercent() bool {
	return windows.NewLazySystemDLL("ntdll.dll").NewProc("wine_get_version").Find() == nil
}

// TestBatchFile: the arguments of a batch file reach the program that it starts, and none of them is run.
func TestBatchFile(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, all := "100% & (x) zo\u00eb", append(slices.Clone(batchArguments), []string{"x&evil.cmd"}, []string{`"&evil.cmd`, "|evil.cmd"}, []string{`" & evil.cmd & "`})
	if losesPercent() {
		dir = strings.ReplaceAll(dir, "%", "")
		for i, args := range all {
			all[i] = slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return strings.Contains(arg, "%") })
		}
	}
	dir = filepath.Join(t.TempDir(), dir)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"run.cmd":  "@\"%TEST_BINARY%\" %*\r\n",
		"shim.bat": "@echo off\r\n\"%~dp0run.cmd\" %*\r\n",
		"evil.cmd": "@echo evil> \"%~dp0evil\"\r\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+";"+os.Getenv("PATH"))
	for _, args := range all {
		for _, c := range []Command{
			{Args: append([]string{filepath.Join(dir, "run.cmd")}, args...)},
			{Args: append([]string{filepath.Join(dir, "run")}, args...)},
			{Args: append([]string{"run"}, args...)},
			{Args: append([]string{`.\run.cmd`}, args...), Dir: dir},
			{Args: append([]string{"shim"}, args...)},
		} {
			c.Env = []string{argumentsRole + "=1", "TEST_BINARY=" + self}
			p, err := Start(c)
			if err != nil {
				t.Errorf("%q: %v", c.Args, err)
				continue
			}
			text, _ := io.ReadAll(p.Stdout)
			p.Stop(t.Context())
			p.Stdout.Close()
			var got []string
			if err := json.Unmarshal(text, &got); err != nil || !slices.Equal(got, args) {
				t.Errorf("%q\n  got  %q\n  want %q", c.Args[0], strings.ToValidUTF8(string(text), "?"), args)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "evil")); err == nil {
		t.Error("an argument was run")
	}
}
