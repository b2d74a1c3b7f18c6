// SPDX-License-Identifier: Apache-2.0

//go:build race

package wire

// overwrite lets a use of memory that was given back show in every test that runs under the
// race detector: bytes that are read after Release are never those of an honest message.
const overwrite = true
