// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/pellucid-mcp/pellucid/platform/privacy"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// toFile appends a batch to the file, which is opened for each batch, so that it can be moved away. Where a process
// that was killed, or a full disk, has left a part of a line, the rest of this line is written first: what reads the file
// meanwhile sees it only grow.
func (f *Follow) toFile(ctx context.Context, first, size int64) (next int64, err error) {
	out, err := privacy.OpenFile(f.File, os.O_RDWR|os.O_APPEND|os.O_CREATE)
	if err != nil {
		return 0, f.fileError(err)
	}
	defer out.Close()
	last, part, err := lastLineOf(out)
	switch {
	case errors.Is(err, errForeign):
		return 0, f.foreignFile()
	case err != nil:
		return 0, f.fileError(err)
	case last != nil:
		if err := f.ofThisLog(ctx, last); err != nil {
			return 0, err
		}
		first = last.Index + 1
	}
	lines, next, err := f.readBatch(ctx, first, size)
	if err != nil {
		return 0, err
	}
	rest, ok := bytes.CutPrefix(lines, part)
	if !ok {
		return 0, f.foreignFile()
	}
	if _, err = out.Write(rest); err == nil {
		err = out.Sync()
	}
	if err != nil {
		return 0, f.fileError(err)
	}
	f.checked = true
	return next, nil
}

func (f *Follow) fileError(err error) error {
	return fmt.Errorf("ledger: export: %s: %w", finding.Quote(f.File), terminal.WithoutPath(err))
}

func (f *Follow) foreignFile() error {
	return f.finalError("%s does not end in a record of this log: move it away, or name another file", finding.Quote(f.File))
}

// ofThisLog refuses a file whose last line is not a record of the log. Once the file was seen to be, it looks no more.
func (f *Follow) ofThisLog(ctx context.Context, last *lastLine) error {
	if f.checked {
		return nil
	}
	e, err := f.log.At(ctx, last.Index)
	switch {
	case errors.Is(err, ledger.ErrNotFound), err == nil && e.ID.String() != last.Statement.Predicate.ID:
		return f.foreignFile()
	}
	return err
}

// lastLine is what the last whole line of a file says of its record.
type lastLine struct {
	Index     int64 `json:"index"`
	Statement struct {
		Predicate struct {
			ID string `json:"id"`
		} `json:"predicate"`
	} `json:"statement"`
}

var errForeign = errors.New("ledger: export: the last line is not a record")

// maxTail is longer than two lines.
const maxTail = 1 << 20

// lastLineOf reads the last whole line of a file, if it has one, and the part of a line behind it.
func lastLineOf(f *os.File) (last *lastLine, part []byte, err error) {
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, errors.New("not a regular file")
	}
	b := make([]byte, min(info.Size(), maxTail))
	if _, err := f.ReadAt(b, info.Size()-int64(len(b))); err != nil {
		return nil, nil, err
	}
	end := bytes.LastIndexByte(b, '\n')
	if end < 0 {
		return nil, b, nil
	}
	line := b[bytes.LastIndexByte(b[:end], '\n')+1 : end]
	last = &lastLine{Index: -1}
	if json.Unmarshal(line, last) != nil || last.Index < 0 || last.Statement.Predicate.ID == "" {
		return nil, nil, errForeign
	}
	return last, b[end+1:], nil
}
