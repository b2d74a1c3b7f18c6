// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"errors"
	"io/fs"
	"os"

	"github.com/pellucid-mcp/pellucid/platform/privacy"
)

func ours(fs.FileInfo) error { return nil }

// keepOwner gives tmp the access list of the file that it replaces.
func (f *file) keepOwner(tmp *os.File) error {
	err := privacy.CopyAccess(f.real, tmp.Name())
	if errors.Is(err, fs.ErrNotExist) {
		return errChanged
	}
	return err
}
