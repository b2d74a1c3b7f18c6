package store

import (
	"context"
	"errors"
	"net"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// why says in constant words what an engine complains of, "" if that is not among what
// a person can mend. The engine's own words may quote what is stored, or a password.
func why(err error) string {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return whySQLite(e.Code())
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return whyPostgres(e.Code)
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok && e != nil {
		return "the database's host is not known"
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the database cannot be reached: connection refused"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, syscall.ETIMEDOUT):
		return "the database cannot be reached: no answer in time"
	}
	return ""
}

func whySQLite(code int) string {
	switch code & 0xff {
	case lib.SQLITE_NOTADB:
		return "the file is no SQLite database"
	case lib.SQLITE_CORRUPT:
		return "the database is damaged"
	case lib.SQLITE_CANTOPEN:
		return "the file cannot be opened"
	case lib.SQLITE_READONLY, lib.SQLITE_PERM:
		return "the file may not be written"
	}
	return ""
}

func whyPostgres(code string) string {
	switch {
	case strings.HasPrefix(code, "28"):
		return "the database refuses the user or password"
	case code == "3D000":
		return "there is no database of that name"
	case code == "42501":
		return "the database's user may not do that"
	case strings.HasPrefix(code, "57P"):
		return "the database is shutting down or starting"
	}
	return ""
}
