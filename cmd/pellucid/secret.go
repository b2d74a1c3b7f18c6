package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/pellucid-mcp/pellucid/finding"
)

// A secrets function returns what a reference stands for: env:NAME is a variable,
// file:PATH a file. A secret never stands on the command line, where every user of
// the machine can read it.
type secrets func(ref string) (string, error)

func (e *env) secrets() secrets {
	return func(ref string) (string, error) {
		value := ""
		switch kind, where, _ := strings.Cut(ref, ":"); kind {
		case "env":
			if value = e.Getenv(where); value == "" {
				return "", fmt.Errorf("variable %s is not set", finding.Quote(where))
			}
		case "file":
			b, err := os.ReadFile(where)
			if err != nil {
				return "", err
			}
			value = strings.TrimRight(string(b), "\r\n")
		default:
			return "", errors.New("a value is given by reference: env:VAR or file:PATH")
		}
		if strings.ContainsAny(value, "\r\n\x00") {
			return "", errors.New("its value holds a line end")
		}
		return value, nil
	}
}

// optional is the secret that ref stands for, or "" where there is no ref.
func (s secrets) optional(flag, ref string) (string, error) {
	if ref == "" {
		return "", nil
	}
	value, err := s(ref)
	if err != nil {
		return "", withCode(exitConfig, fmt.Errorf("%s: %w", flag, err))
	}
	return value, nil
}
