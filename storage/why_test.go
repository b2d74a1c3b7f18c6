// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

func TestWhy(t *testing.T) {
	t.Parallel()
	plain := filepath.Join(t.TempDir(), "notes.txt")
	if err := os.WriteFile(plain, []byte(strings.Repeat("no database\n", 200)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ where, want string }{
		{plain, "store: open: the file is no SQLite database"},
		{"postgres://u:s3cret@127.0.0.1:1/none?connect_timeout=1", "store: open: the database cannot be reached: connection refused"},
	} {
		s, err := Open(t.Context(), tt.where, Options{})
		if err == nil {
			s.Close()
		}
		if err == nil || err.Error() != tt.want {
			t.Errorf("Open: %v; want %s", err, tt.want)
		}
	}
	for code, want := range map[string]string{"28P01": "user or password", "3D000": "no database", "42501": "may not", "57P03": "starting"} {
		if got := why(&pgconn.PgError{Code: code, Message: "s3cret"}); !strings.Contains(got, want) || strings.Contains(got, "s3cret") {
			t.Errorf("why(%s) = %q", code, got)
		}
	}
	if got := why(context.DeadlineExceeded); !strings.Contains(got, "in time") {
		t.Errorf("why(deadline) = %q", got)
	}
}
