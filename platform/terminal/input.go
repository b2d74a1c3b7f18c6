// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/pellucid-mcp/pellucid/text/finding"
)

// MaxInput bounds a text, or one row of many, in bytes.
const MaxInput = 32 << 20

// ErrTooLarge says that an input exceeds maxInput.
var ErrTooLarge = errors.New("longer than 32 MiB")

// OpenInput opens the file of that name; none and "-" stand for standard input, unless
// that is nil.
func OpenInput(name string, stdin io.Reader) (io.ReadCloser, error) {
	if stdin != nil && (name == "" || name == "-") {
		return io.NopCloser(stdin), nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", finding.Quote(name), WithoutPath(err))
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		f.Close()
		return nil, fmt.Errorf("open %s: %w", finding.Quote(name), ErrDirectory)
	}
	return f, nil
}

// OpenDir opens the directory of that name. A file of that name is an error.
func OpenDir(name string) (fs.FS, error) {
	info, err := os.Stat(name)
	if err == nil && !info.IsDir() {
		err = errors.New("not a directory")
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", finding.Quote(name), WithoutPath(err))
	}
	return os.DirFS(name), nil
}

// ErrDirectory says that an input is no file.
var ErrDirectory = errors.New("it is a directory")

// WithoutPath takes the path out of an error of package os: whoever reports it names
// the file once, and quoted.
func WithoutPath(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

// ErrUTF16 says that a file is not UTF-8, but what the PowerShell of Windows writes with ">".
var ErrUTF16 = errors.New("it is UTF-16: save it as UTF-8")

// IsUTF16 reports whether a text is UTF-16: it begins with its mark, or with a character of ASCII in two bytes.
func IsUTF16(src []byte) bool {
	return bytes.HasPrefix(src, []byte("\xff\xfe")) || bytes.HasPrefix(src, []byte("\xfe\xff")) || len(src) > 1 && (src[0] == 0) != (src[1] == 0)
}

// ReadInput reads everything, up to maxInput bytes.
func ReadInput(name string, stdin io.Reader) ([]byte, error) {
	r, err := OpenInput(name, stdin)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var b bytes.Buffer
	n, err := b.ReadFrom(io.LimitReader(r, MaxInput+1))
	if err == nil && n > MaxInput {
		err = ErrTooLarge
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", InputName(name), err)
	}
	return b.Bytes(), nil
}

// InputName returns what an input is called in a message.
func InputName(name string) string {
	if name == "" || name == "-" {
		return "standard input"
	}
	return finding.Quote(name)
}

// A Rows cuts an input into lines, and holds one line at a time.
type Rows struct {
	r   *bufio.Reader
	buf []byte
}

// NewRows returns the Rows of r.
func NewRows(r io.Reader) *Rows { return &Rows{r: bufio.NewReaderSize(r, 64<<10)} }

// Next returns the next line without its line feed, valid until the call
// after. Of a line that exceeds maxInput it returns the beginning, and
// errTooLarge; the rest is skipped. At the end it returns io.EOF.
func (rs *Rows) Next() ([]byte, error) {
	rs.buf = rs.buf[:0]
	long := false
	for {
		part, err := rs.r.ReadSlice('\n')
		if err == nil {
			part = part[:len(part)-1]
		}
		if long = long || len(rs.buf)+len(part) > MaxInput; !long {
			rs.buf = append(rs.buf, part...)
		}
		switch {
		case err == bufio.ErrBufferFull:
		case err == io.EOF && len(part) == 0 && len(rs.buf) == 0:
			return nil, io.EOF
		case err != nil && err != io.EOF:
			return nil, err
		case long:
			return rs.buf, ErrTooLarge
		default:
			return rs.buf, nil
		}
	}
}

// Waiting reports whether nothing more has arrived yet, so that whoever waits
// for what has been written should get it.
func (rs *Rows) Waiting() bool { return rs.r.Buffered() == 0 }
