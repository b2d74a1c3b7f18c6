// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/pellucid-mcp/pellucid/platform/syserror"
)

// why says in constant words what an engine complains of, "" if that is not among what
// a person can mend. The engine's own words may quote what is stored, or a password.
func why(err error) string {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		if e.Code()&0xff == lib.SQLITE_ERROR && strings.Contains(e.Error(), "no such table") {
			return whyNoTable
		}
		if text := whySQLite(e.Code()); text != "" {
			return text
		}
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && whyPostgres(e.Code) != "" {
		return whyPostgres(e.Code)
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok && e != nil {
		return "the database's host is not known"
	}
	switch {
	case syserror.Refused(err):
		return whyUnreachable + ": connection refused"
	case errors.Is(err, driver.ErrBadConn), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), syserror.Lost(err):
		return whyUnreachable + ": the connection was lost"
	case errors.Is(err, context.DeadlineExceeded), syserror.TimedOut(err):
		return whyUnreachable + ": no answer in time"
	}
	return ""
}

// The reasons that Reason tells apart.
const (
	whyLocked      = "another process or transaction holds a lock of the database"
	whyFull        = "the disk of the database is full"
	whyNoTable     = "a table of the database is missing"
	whyUnreachable = "the database cannot be reached"
)

// Reason says in one constant word why a store failed: "locked", "full", "missing-table",
// "unreachable", or "failing" where it is something else.
func Reason(err error) string {
	var f *failure
	if !errors.As(err, &f) {
		return "failing"
	}
	text := why(f.cause)
	switch {
	case text == whyLocked, errors.Is(f.sentinel, ErrBusy):
		return "locked"
	case text == whyFull, errors.Is(f.sentinel, ErrFull):
		return "full"
	case text == whyNoTable:
		return "missing-table"
	case strings.HasPrefix(text, whyUnreachable):
		return "unreachable"
	}
	return "failing"
}

// whySQLite says in words for the operator what an error code of SQLite means; "" for other codes.
func whySQLite(code int) string {
	switch code & 0xff {
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED:
		return whyLocked
	case lib.SQLITE_FULL:
		return whyFull
	case lib.SQLITE_IOERR:
		return "a file of the database cannot be read or written: is the disk full, or a quota reached?"
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

// whyPostgres says in words for the operator what an error code of Postgres means; "" for other codes.
func whyPostgres(code string) string {
	switch {
	case strings.HasPrefix(code, "28"):
		return "the database refuses the user or password"
	case code == "55P03", code == "40001", code == "40P01":
		return whyLocked
	case code == "53100":
		return whyFull
	case code == "26000", code == "42P05":
		return "a pooler gives each transaction another connection: add default_query_exec_mode=cache_describe to the URL of the database"
	case code == "53300":
		return whyUnreachable + ": too many connections"
	case code == "42P01":
		return whyNoTable
	case code == "3D000":
		return "there is no database of that name"
	case code == "42501":
		return "the database's user may not do that"
	case strings.HasPrefix(code, "57P"):
		return whyUnreachable + ": it is shutting down or starting"
	}
	return ""
}
