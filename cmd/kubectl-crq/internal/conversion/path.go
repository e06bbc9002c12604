// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// path is where a value stands, as in spec.quota.hard["requests.cpu"] or
// spec.selectors[0].
type path string

// root is where the object itself stands.
const root path = ""

// plainName needs no quotes in a path.
const plainName = `^[A-Za-z_][A-Za-z0-9_-]*$`

var isPlain = regexp.MustCompile(plainName).MatchString //nolint:gochecknoglobals // compiled once

func (p path) to(names ...string) path {
	for _, name := range names {
		switch {
		case !isPlain(name):
			p += path("[" + strconv.QuoteToASCII(name) + "]")
		case p == root:
			p = path(name)
		default:
			p += path("." + name)
		}
	}
	return p
}

func (p path) index(i int) path { return path(fmt.Sprintf("%s[%d]", p, i)) }

// visit calls with each value that stands at the path or below and is neither an
// object nor a list. What is empty or null says nothing, and isn't visited.
func (p path) visit(value any, call func(path string, value any)) {
	switch value := value.(type) {
	case nil:
	case map[string]any:
		for name, below := range value {
			p.to(name).visit(below, call)
		}
	case []any:
		for i, below := range value {
			p.index(i).visit(below, call)
		}
	default:
		call(string(p), value)
	}
}

// leaves returns all values by their paths.
func leaves(content any) map[string]any {
	all := map[string]any{}
	root.visit(content, func(path string, value any) { all[path] = value })
	return all
}

// isBelow tells whether a path is the prefix or stands below it.
func isBelow(path, prefix string) bool {
	rest, found := strings.CutPrefix(path, prefix)
	return found && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
