// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// ConfigName is the name of a configuration.
const ConfigName = "pellucid.yaml"

// ConfigFile is the configuration of this user, pellucid.yaml in the folder pellucid of the user's
// configuration folder; "" if it does not exist.
func ConfigFile() string {
	folder, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	path := filepath.Join(folder, "pellucid", ConfigName)
	if !mayExist(path) {
		return ""
	}
	return path
}

// mayExist reports whether a file exists, or may exist: a link that leads nowhere, to it or to a folder above it, counts
// as a file that cannot be read.
func mayExist(path string) bool {
	isGone := func(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) }
	at := path
	for at != filepath.Dir(at) {
		if _, err := os.Lstat(at); !isGone(err) {
			break
		}
		at = filepath.Dir(at)
	}
	_, err := os.Stat(at)
	return at == path || isGone(err)
}

// ConfigInForce is the configuration that up and doctor read where none is named: that of the working directory, or
// else that of this user; "" if there is neither. wrap, which a client may start in any folder, and the verbs
// that send secrets read only that of the user.
func ConfigInForce() string {
	if _, err := os.Lstat(ConfigName); !errors.Is(err, fs.ErrNotExist) {
		return ConfigName
	}
	return ConfigFile()
}
