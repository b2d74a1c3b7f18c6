// SPDX-License-Identifier: Apache-2.0

// Package valueref finds the value that a reference in a flag or a configuration stands for: env:NAME or file:PATH.
package valueref

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

const (
	// MaxValue bounds the bytes of a value.
	MaxValue = 64 << 10
	maxFile  = 32 << 20 // bytes of a file that is read
	// NotSet ends the error of a variable that the environment does not have.
	NotSet = " is not set"
)

// A Source is where values are found. The zero value is the environment and the files of this process.
type Source struct {
	Getenv   func(string) (string, bool)
	ReadFile func(name string) ([]byte, error)
}

// Resolve returns the value of a reference: one line, without its line end. The error holds nothing of it.
func (s Source) Resolve(ref string) (string, error) {
	value := ""
	kind, where, _ := strings.Cut(ref, ":")
	switch kind {
	case "env":
		getenv := s.Getenv
		if getenv == nil {
			getenv = os.LookupEnv
		}
		v, ok := getenv(where)
		if !ok || v == "" {
			return "", errors.New("variable " + finding.Quote(where) + NotSet)
		}
		value = v
	case "file":
		b, err := s.Read(where, MaxValue)
		if err != nil {
			return "", err
		}
		value = strings.TrimRight(string(b), "\r\n")
	default:
		return "", errors.New("a value is given by reference: env:NAME or file:PATH")
	}
	switch {
	case value == "":
		return "", errors.New("what it refers to is empty")
	case strings.ContainsAny(value, "\r\n\x00"):
		return "", errors.New("what it refers to is more than one line")
	}
	return value, nil
}

// Read returns a file of at most so many bytes. The error says no more of the file than its quoted name.
func (s Source) Read(name string, most int) ([]byte, error) {
	if name == "" {
		return nil, errors.New("the name of the file is missing")
	}
	read := s.ReadFile
	if read == nil {
		read = ReadRegular
	}
	b, err := read(name)
	var pe *fs.PathError
	switch {
	case errors.As(err, &pe):
		err = pe.Err
		fallthrough
	case err != nil:
		return nil, &unreadable{finding.Quote(name), err}
	case terminal.IsUTF16(b):
		return nil, &unreadable{finding.Quote(name), terminal.ErrUTF16}
	case len(b) > most:
		return nil, fmt.Errorf("file %s is longer than %d bytes", finding.Quote(name), most)
	}
	return b, nil
}

// ReadRegular reads a file, but nothing that never ends or that may make the
// reader wait.
func ReadRegular(name string) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // of a pipe opening waits for a writer
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, errors.New("it is no regular file")
	}
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if len(b) > maxFile {
		return nil, errors.New("it is too long")
	}
	return b, err
}

// An unreadable file is told by its quoted name.
type unreadable struct {
	name  string
	cause error
}

func (e *unreadable) Error() string {
	return "file " + e.name + " cannot be read: " + errorText(e.cause)
}

func (e *unreadable) Unwrap() error { return e.cause }

// errorText is the part of a system's error that may be shown.
func errorText(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "there is no such file"
	}
	s := finding.Quote(err.Error())
	return s[1 : len(s)-1]
}
