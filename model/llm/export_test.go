// SPDX-License-Identifier: Apache-2.0

package llm

// Reserved is what is set aside of tokens and calls.
func (b *Budget) Reserved() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reserved.calls + b.reserved.tokens
}
