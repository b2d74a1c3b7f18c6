//go:build !unix

package store_test

import "syscall"

func unprivileged(string) (*syscall.SysProcAttr, error) { return nil, nil }
