// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/platform/privacy"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// Export writes a log into a directory that does not exist or is empty, and returns the number
// of files. With openings, which are not for the public, only the owner may read them.
func Export(ctx context.Context, l *storage.Ledger, dir string, openings bool) (files int, err error) {
	if list, err := os.ReadDir(dir); err == nil && len(list) > 0 {
		return 0, exit.With(exit.Usage, errors.New("ledger: export: the directory is not empty"))
	}
	var op ledger.Opener
	write := func(name string, data []byte) error { return os.WriteFile(name, data, 0o644) }
	if openings {
		op, write = l, privacy.WriteFile
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, fmt.Errorf("ledger: export: make %s: %w", finding.Quote(dir), terminal.WithoutPath(err))
	}
	err = ledger.Export(ctx, l, op, func(path string, data []byte) error {
		files++
		name := filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		return write(name, data)
	})
	if errors.Is(err, ledger.ErrNotFound) {
		err = install.ErrNoLog
	}
	return files, err
}
