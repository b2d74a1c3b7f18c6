// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"slices"
)

// InsertRows writes rows, width arguments each, many to a statement; tail follows
// the values.
func (t *Tx) InsertRows(ctx context.Context, into string, width int, tail string, args []any) error {
	if t.engine.arrays() && len(args) > 0 {
		types, columns := arrays(width, args)
		return t.Execute(ctx, "INSERT INTO "+into+" SELECT * FROM unnest("+types+")"+tail, columns...)
	}
	for part := range slices.Chunk(args, width*100) {
		query := "INSERT INTO " + into + " VALUES " + tuples(len(part)/width, width) + tail
		if err := t.Execute(ctx, query, part...); err != nil {
			return err
		}
	}
	return nil
}

// arrays turns rows into one argument for each column, so that one statement writes any number of rows.
func arrays(width int, args []any) (types string, columns []any) {
	for c := range width {
		if c > 0 {
			types += ", "
		}
		switch args[c].(type) {
		case []byte:
			types, columns = types+"?::bytea[]", append(columns, column[[]byte](width, args[c:]))
		case string:
			types, columns = types+"?::text[]", append(columns, column[string](width, args[c:]))
		case int64:
			types, columns = types+"?::bigint[]", append(columns, column[int64](width, args[c:]))
		default:
			types, columns = types+"?::bigint[]", append(columns, column[int](width, args[c:]))
		}
	}
	return types, columns
}

// column is every value of a column; args begins with its first.
func column[T any](width int, args []any) []T {
	out := make([]T, 0, len(args)/width+1)
	for i := 0; i < len(args); i += width {
		out = append(out, args[i].(T))
	}
	return out
}

// Blob returns b, never nil, which would be NULL.
func Blob(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// Anys returns the elements as arguments.
func Anys[T any](s []T) []any {
	out := make([]any, len(s))
	for i, v := range s {
		out[i] = v
	}
	return out
}
