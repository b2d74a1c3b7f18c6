// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"
)

// A Task says what counts as the user's words.
type Task string

// The kinds of Task.
const (
	TaskUserTurns Task = "user-turns" // the turns of the user; a declared task is ignored
	// TaskDeclared: the task that the host declares for a request, where it does. Turns of the
	// user are then third-party text: a host that puts documents into them needs this.
	TaskDeclared Task = "declared"
	TaskBoth     Task = "both"
)

// taskHeader is in which a host declares the task of a session. It ends here.
const taskHeader = "X-Pellucid-Task"

// maxTask bounds a declared task, in bytes.
const maxTask = 16 << 10

// task is the task that a request declares; "" if it declares none. ok is false if what it
// says cannot be read.
func (g *Guard) task(h http.Header) (task string, ok bool) {
	list := h.Values(taskHeader)
	if g.o.Task == TaskUserTurns || len(list) == 0 {
		return "", true
	}
	if len(list) > 1 {
		return "", false
	}
	return parseTask(list[0])
}

// parseTask reads the value of the header, which is printable ASCII or an ext-value of RFC
// 8187: the charset UTF-8, no language, and percent-encoded text.
func parseTask(s string) (task string, ok bool) {
	const encoded = "utf-8''"
	if len(s) >= len(encoded) && strings.EqualFold(s[:len(encoded)], encoded) {
		var err error
		if s, err = url.PathUnescape(s[len(encoded):]); err != nil {
			return "", false
		}
	} else if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
		return "", false
	}
	s = strings.TrimSpace(s)
	return s, s != "" && len(s) <= maxTask && utf8.ValidString(s) && !strings.ContainsRune(s, 0)
}
