// SPDX-License-Identifier: Apache-2.0

// Package resident gives back memory that only the start of this process has needed.
package resident
