// SPDX-License-Identifier: Apache-2.0

package training

import "regexp"

// phrases is the baseline: what people who write a filter in an afternoon look for.
// It is measured beside the model and used for nothing else. Its author knew the
// published attacks, so that it is no stranger to any family.
var phrases = regexp.MustCompile(`(?i)` +
	`(ignore|disregard|forget|override|bypass)\W+(\w+\W+){0,4}(previous|prior|above|earlier|preceding|all|any|your)\W+(\w+\W+){0,3}(instruction|prompt|rule|guideline|directive|command|context)` +
	`|you are now\b|new instructions?\s*:|system\s*(prompt|message|override)\s*[:\]]|do not (tell|inform|mention|reveal)\b|without (telling|informing) the user` +
	`|(reveal|print|show|repeat)\W+(\w+\W+){0,3}(system prompt|instructions)|\bjailbreak|developer mode|\bDAN\b|important (message|instruction)s?\b` +
	`|pretend (to be|you)|act as (an?|if)\b|from now on\b|instead of (doing|answering|following)`)
