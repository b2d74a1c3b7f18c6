// SPDX-License-Identifier: Apache-2.0

package corpus_test

import (
	"fmt"
	"log"

	"github.com/pellucid-mcp/pellucid/grounding/corpus"
)

// An adapter is tested with each vector that is meant for its scope.
func ExampleAll() {
	vectors, err := corpus.All()
	if err != nil {
		log.Fatal(err)
	}
	for _, v := range vectors {
		if !v.In(corpus.Literal) || v.Family != "homoglyph" {
			continue
		}
		fmt.Println(v.ID(), v.Level(), v.Field, v.Expected)
		fmt.Printf("%+q becomes %q\n", v.Payload, v.Want(corpus.Literal).Text)
		break
	}
	// Output:
	// homoglyph/001-cyrillic-a MUST rationale accept
	// "Log in at p\u0430ypal today" becomes "Log in at paypal today"
}

// Parse reads a vector of your own, of the same form.
func ExampleParse() {
	v, err := corpus.Parse([]byte(`clause: 4.4
family: bidi
field: rationale
scope: any
level: MUST
expect: accept
text: abc
meta: stripped_positions
comment: an override in the middle of a word

a\u{202e}bc
`))
	fmt.Printf("%v %+q %v\n", v.Expected, v.Payload, err)

	_, err = corpus.Parse([]byte("clause: 4.4\ncolour: red\n"))
	fmt.Println(err)
	// Output:
	// accept "a\u202ebc" <nil>
	// line 2: unknown, repeated or out of order
}
