// SPDX-License-Identifier: Apache-2.0

package child

import (
	"runtime"
	"slices"
	"strings"
)

// defaultEnv names the variables that every child gets from this process where
// they are set: what programs need to find themselves, their user, their
// language and a place for temporary files, and nothing that holds a secret.
var defaultEnv = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TZ",
	"LANG", "LC_ALL", "LC_CTYPE",
	"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR",
	// Windows
	"APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "NUMBER_OF_PROCESSORS",
	"PATHEXT", "PROCESSOR_ARCHITECTURE", "PROGRAMDATA", "PROGRAMFILES", "PROGRAMFILES(X86)",
	"SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE", "WINDIR",
}

// environ picks from parent the default and the inherited names and adds extra.
// A later setting of a name wins.
func environ(parent, inherit, extra []string) []string {
	same := func(a, b string) bool { return a == b }
	if runtime.GOOS == "windows" {
		same = strings.EqualFold
	}
	wanted := func(name string) bool {
		is := func(w string) bool { return same(w, name) }
		return slices.ContainsFunc(defaultEnv, is) || slices.ContainsFunc(inherit, is)
	}
	env := []string{} // never nil: nil means everything to os/exec
	for _, kv := range parent {
		name, value, ok := strings.Cut(kv, "=")
		// A shell function exported as a variable is code.
		if ok && wanted(name) && !strings.HasPrefix(value, "()") {
			env = append(env, kv)
		}
	}
	return append(env, extra...)
}
