// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"

	"github.com/pellucid-mcp/pellucid/grounding/ground"
)

//go:embed migrations
var migrations embed.FS

// migrate brings the schema up to date. A schema that is newer than this binary
// is left alone: writing to it could break what the newer one relies on.
func migrate(ctx context.Context, db *sql.DB, dialect goose.Dialect, dir string, opts ...goose.ProviderOption) error {
	files, err := fs.Sub(migrations, "migrations/"+dir)
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(dialect, db, files, opts...)
	if err != nil {
		return err
	}
	current, target, err := p.GetVersions(ctx)
	if err != nil {
		return err
	}
	if current > target {
		return fmt.Errorf("%w: %d, not %d", ground.ErrNewerSchema, current, target)
	}
	if current == target {
		return nil
	}
	_, err = p.Up(ctx)
	return err
}
