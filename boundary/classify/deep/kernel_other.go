// SPDX-License-Identifier: Apache-2.0

//go:build !amd64

package deep

func kernels() []*kernel { return []*kernel{&plain} }
