// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package pgtest

import "syscall"

func unprivileged(string) (*syscall.SysProcAttr, error) { return nil, nil }
